"""Pages of evaluations, under /t/<slug>/evaluations/."""

from __future__ import annotations

from django.urls import path

from apps.evaluations.annotation import views as annotation_views
from apps.evaluations.compare import gate_views, repeats_views
from apps.evaluations.compare import views as compare_views
from apps.evaluations.example import views as example_views
from apps.evaluations.experiments import views
from apps.evaluations.failures import views as failure_views
from apps.evaluations.judges import views as trust_views
from apps.evaluations.safety import views as safety_views
from apps.evaluations.sampling import views as sampling_views
from apps.evaluations.trials import views as trial_views

app_name = "evaluations"
urlpatterns = [
    path("", views.experiments, name="list"),
    path("new/", views.experiment_new, name="create"),
    path("safety/new/", safety_views.suite_new, name="suite-create"),
    path("sample/<int:collection_pk>/remove/", example_views.remove, name="example-remove"),
    path("compare/", compare_views.compare, name="compare"),
    path("promote/", compare_views.promote, name="promote"),
    path("arms/<int:pk>/failures/", failure_views.failures, name="failures"),
    path("arms/<int:pk>/failures/group/", failure_views.group, name="failures-group"),
    path("trials/<int:pk>/tags/", failure_views.tag, name="trial-tags"),
    path("arms/<int:pk>/failures/collect/", failure_views.collect, name="failures-collect"),
    path("arms/<int:pk>/failures/split/", failure_views.split, name="failures-split"),
    path("arms/<int:pk>/gate/", gate_views.gate, name="gate"),
    path("arms/<int:pk>/repeats/", repeats_views.repeats, name="repeats"),
    path("trials/<int:pk>/", trial_views.trial, name="trial"),
    path("annotation/", annotation_views.queues, name="queues"),
    path("annotation/new/", annotation_views.queue_new, name="queue-create"),
    path("annotation/<int:pk>/", annotation_views.queue, name="queue"),
    path("annotation/<int:pk>/act/", annotation_views.queue_act, name="queue-act"),
    path("annotation/<int:pk>/grade/", annotation_views.annotate, name="annotate"),
    path("live/", sampling_views.rules, name="live"),
    path("live/new/", sampling_views.rule_new, name="live-create"),
    path("live/<int:pk>/", sampling_views.rule, name="live-rule"),
    path("live/<int:pk>/act/", sampling_views.rule_act, name="live-act"),
    path("trust/", trust_views.trust, name="trust"),
    path("trust/<int:pk>/calibrate/", trust_views.calibrate, name="calibrate"),
    path("rubrics/", trust_views.rubrics, name="rubrics"),
    path("rubrics/new/", trust_views.rubric_new, name="rubric-create"),
    path("rubrics/<int:pk>/", trust_views.rubric, name="rubric"),
    path("rubrics/<int:pk>/change/", trust_views.rubric_change, name="rubric-change"),
    path("<int:pk>/", views.experiment, name="detail"),
    path("<int:pk>/act/", views.experiment_act, name="act"),
    path("<int:pk>/safety/", safety_views.safety, name="safety"),
]
