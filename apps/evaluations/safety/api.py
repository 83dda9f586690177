"""REST of safety suites. The views hold no rules: ``report`` reads, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evaluations.attacks.values import Carrier, Category
from apps.evaluations.results import selectors
from apps.evaluations.results.shapes import EstimateOutput
from apps.evaluations.safety.selectors import safety_report
from apps.evaluations.safety.services import MOST_CONTROLS, MOST_PER_PAIR, MOST_SEED, suite_create
from web.drf.inputs import valid
from web.drf.views import TenantAPIView

_TAGS = ["evaluations"]
_BIGINT = 2**63 - 1


class SuiteInput(serializers.Serializer[Any]):
    """A safety suite to be made."""

    name = serializers.CharField(max_length=120)
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=50,
        help_text="Collections whose texts carry the attacks; with neither these nor a version: built-in "
        "short texts.",
    )
    version = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=_BIGINT,
        help_text="Id of a dataset version whose rows carry the attacks with their own questions.",
    )
    carriers = serializers.ListField(
        child=serializers.CharField(max_length=40),
        required=False,
        default=list(Carrier),
        max_length=20,
        help_text=f"Of: {', '.join(Carrier)}.",
    )
    categories = serializers.ListField(
        child=serializers.CharField(max_length=40),
        required=False,
        default=list(Category),
        max_length=20,
        help_text=f"What attackers want, any of: {', '.join(Category)}.",
    )
    per_pair = serializers.IntegerField(
        required=False,
        default=1,
        min_value=1,
        max_value=MOST_PER_PAIR,
        help_text="Attacks for each carrier and goal.",
    )
    controls = serializers.IntegerField(
        required=False,
        default=3,
        min_value=0,
        max_value=MOST_CONTROLS,
        help_text="Harmless rows for each carrier.",
    )
    seed = serializers.IntegerField(
        required=False,
        default=1,
        min_value=0,
        max_value=MOST_SEED,
        help_text="The same seed over the same documents gives the same rows.",
    )


class SuiteOutput(serializers.Serializer[Any]):
    """The dataset that was made."""

    dataset = serializers.IntegerField(source="dataset_id")
    version = serializers.IntegerField(
        source="pk", help_text="Id of its first version; use it in an experiment with the scorer `attack`."
    )
    row_count = serializers.IntegerField()
    content_hash = serializers.CharField()


class RateOutput(serializers.Serializer[Any]):
    """How many of some answers did what they should not."""

    hits = serializers.IntegerField()
    count = serializers.IntegerField()
    share = EstimateOutput(allow_null=True, help_text="With Wilson's 95 % interval; null without answers.")


class SafetyLineOutput(serializers.Serializer[Any]):
    """One kind of attack."""

    key = serializers.CharField()
    title = serializers.CharField(source="label")
    rates = RateOutput(many=True, help_text="Attack success of each arm, in order.")


class SafetyGroupOutput(serializers.Serializer[Any]):
    """Attacks by one of their facts."""

    key = serializers.CharField(help_text="carrier, category, disguise or place.")
    lines = SafetyLineOutput(many=True)


class ArmSafetyOutput(serializers.Serializer[Any]):
    """One arm over the whole suite."""

    arm = serializers.IntegerField(source="arm.pk")
    tools = serializers.CharField(help_text="Its tool set; empty for its own or none.")
    success = RateOutput(help_text="Attacks that succeeded.")
    refusals = RateOutput(help_text="Harmless questions that were not answered.")
    refused_calls = serializers.IntegerField(help_text="Attacks stopped only because a call was refused.")
    unscored = serializers.IntegerField(help_text="Answers that couldn't be scored; they aren't counted.")
    is_extractive = serializers.BooleanField(
        help_text="No language model answered; quotes-only mode can't follow instructions."
    )


class AttackSuccessOutput(serializers.Serializer[Any]):
    """An attack that succeeded."""

    trial = serializers.IntegerField()
    run = serializers.IntegerField(allow_null=True)
    row = serializers.IntegerField()
    arm = serializers.IntegerField(source="arm.pk")
    carrier = serializers.CharField()
    category = serializers.CharField()
    question = serializers.CharField()
    reason = serializers.CharField()
    evidence = serializers.CharField()


class SafetyOutput(serializers.Serializer[Any]):
    """The safety of an experiment's arms."""

    arms = ArmSafetyOutput(many=True)
    groups = SafetyGroupOutput(many=True)
    succeeded = AttackSuccessOutput(many=True, help_text="In row order, at most 100.")
    succeeded_count = serializers.IntegerField()


class SuitesView(TenantAPIView):
    """Safety suites."""

    actions = {"POST": "dataset.write"}

    @extend_schema(
        operation_id="safety_suites_create", tags=_TAGS, request=SuiteInput, responses={201: SuiteOutput}
    )
    def post(self, request: Request) -> Response:
        """Create a dataset of planted instructions and harmless controls, with a version for experiments."""
        made = suite_create(tenant=self.tenant, actor=self.actor, **valid(SuiteInput, request.data))
        return Response(SuiteOutput(made).data, status=status.HTTP_201_CREATED)


class SafetyView(TenantAPIView):
    """What a safety suite has shown."""

    actions = {"GET": "evaluation.read"}

    @extend_schema(operation_id="experiment_safety", tags=_TAGS, responses=SafetyOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return attack success by carrier, goal, disguise and place for each arm. 404 where no attacks are scored."""
        row = selectors.experiment_get(actor=self.actor, pk=pk)
        found = safety_report(actor=self.actor, experiment=row)
        return Response(SafetyOutput(found).data)
