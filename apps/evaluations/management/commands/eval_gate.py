from __future__ import annotations

import json
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.evaluations.compare.gate import PASSED, GateResult, gate_run
from apps.evaluations.compare.gate_reports import to_junit, to_sarif
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.judges.trust import BAR
from apps.evaluations.results.selectors import arm_list
from basics.errors import DomainError
from tenancy.actors import system_actor
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope

USAGE_CODE = 2


class Command(BaseCommand):
    help = (
        "Decide whether an arm of an experiment may be released. Exit code 0: passed; 1: a deciding "
        "score has dropped; 2: wrong usage; 3: not comparable (no baseline, other documents, stale labels, "
        "unfinished)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--experiment", type=int, metavar="ID", help="default: the newest one")
        parser.add_argument("--arm", type=int, default=0, metavar="N", help="its position, from 0")
        parser.add_argument("--baseline", default="main", metavar="NAME")
        parser.add_argument("--tolerance", default="0", metavar="FALL", help="allowed drop, 0 to 1")
        parser.add_argument(
            "--min", action="append", default=[], metavar="SCORE=VALUE", help="minimum mean of a score"
        )
        parser.add_argument("--most-failed-rows", type=int, metavar="N")
        parser.add_argument(
            "--must-pass",
            action="append",
            type=int,
            default=[],
            metavar="ROW",
            help="a row that must pass regardless of the means",
        )
        parser.add_argument(
            "--bar",
            default=str(BAR),
            metavar="KAPPA",
            help=f"minimum judge agreement (kappa) (default {BAR})",
        )
        parser.add_argument(
            "--calibrated",
            action="store_true",
            help="adjust judges' scores to people's grades, using the newest calibration",
        )
        parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write JSON")
        parser.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0")
        parser.add_argument(
            "--sarif-at",
            default="",
            metavar="PATH",
            help="file in your repository where a code host shows the SARIF results",
        )
        parser.add_argument("--promote", action="store_true", help="make the arm the baseline if it passes")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        minima = dict(self._minimum(text) for text in options["min"])
        with tenant_scope(tenant.pk):
            actor = system_actor(tenant.pk)
            rows = arm_list(actor=actor).filter(position=options["arm"])
            if options["experiment"] is not None:
                rows = rows.filter(experiment_id=options["experiment"])
            arm = rows.first()
            if arm is None:
                raise CommandError("This experiment or arm doesn't exist.", returncode=USAGE_CODE)
            result = gate_run(
                actor=actor,
                arm=arm,
                baseline=options["baseline"],
                tolerance=self._number(options["tolerance"]),
                minima=minima,
                most_failed_rows=options["most_failed_rows"],
                must_pass=options["must_pass"],
                bar=self._number(options["bar"]),
                calibrated=options["calibrated"],
            )
            if options["promote"] and result.code == PASSED:
                try:
                    baseline_set(
                        tenant=tenant, actor=actor, arm=arm, name=options["baseline"], note="Passed the gate."
                    )
                except DomainError as error:
                    raise CommandError(error.message, returncode=USAGE_CODE) from error
        self._tell(result)
        if options["json"]:
            options["json"].write_text(json.dumps(result.to_json(), indent=2) + "\n")
        if options["junit"]:
            options["junit"].write_bytes(to_junit(result))
        if options["sarif"]:
            log = to_sarif(result, at=options["sarif_at"])
            options["sarif"].write_text(json.dumps(log, indent=2) + "\n")
        if result.code != PASSED:
            sys.exit(result.code)

    def _tell(self, result: GateResult) -> None:
        for check in result.checks:
            self.stdout.write(f"{check.verdict:8}  {check.name}: {check.message}")
        if result.failed_rows:
            self.stdout.write(f"Rows that passed and fail now: {', '.join(map(str, result.failed_rows))}")
        self.stdout.write(result.reason)

    def _minimum(self, text: str) -> tuple[str, float]:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise CommandError(
                f"--min takes SCORE=VALUE, for example accuracy=0.8, not “{text}”.", returncode=USAGE_CODE
            )
        return name.strip(), self._number(value)

    def _number(self, text: str) -> float:
        try:
            number = float(Decimal(text))
        except InvalidOperation as error:
            raise CommandError(f"“{text}” isn't a number.", returncode=USAGE_CODE) from error
        if not 0 <= number <= 1:
            raise CommandError(f"{text} isn't between 0 and 1.", returncode=USAGE_CODE)
        return number
