"""The chart is rendered by Helm's own library and held to the API's schemas; what it names must exist in the product."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.contrib.postgres.functions import TransactionNow
from django.core.management import get_commands, load_command_class
from django.db import connection
from django.urls import resolve

from config import env, healthcheck, variables
from jobs.health import ProbeServer, WorkerHealth
from jobs.models import Job
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.factories import make_tenant
from web.metrics import PATH

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "groundwork"
HOSTS = {"GROUNDWORK_ALLOWED_HOSTS": "kb.example.org,10.0.0.1"}
STORE = {"GROUNDWORK_FILES_URL": "s3://bucket/files"}
PLAIN: dict[str, Any] = {"config": {**HOSTS, **STORE}, "secret": {"existing": "groundwork"}}
SHARED: dict[str, Any] = {
    "config": HOSTS,
    "secret": {"existing": "groundwork"},
    "files": {"existingClaim": "shared"},
}
FULL: dict[str, Any] = {
    "config": {**HOSTS, **STORE, "GROUNDWORK_LOG_LEVEL": "WARNING"},
    "secret": {
        "values": {
            "DATABASE_URL": "postgresql://u:hidden-1@db/x",
            "GROUNDWORK_SECRET_KEY": "hidden-2",
            "GROUNDWORK_METRICS_TOKEN": "hidden-3-hidden-3",
        }
    },
    "image": {"repository": "registry.example.org/groundwork", "tag": "7", "pullSecrets": [{"name": "pull"}]},
    "web": {
        "autoscaling": {"enabled": True},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "web", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
    },
    "worker": {
        "autoscaling": {"enabled": True},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "jobs", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
    },
    "ingress": {
        "enabled": True,
        "host": "kb.example.org",
        "tlsSecret": "tls",
        "className": "nginx",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
    },
    "networkPolicy": {"webFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "serviceAccountName": "groundwork",
    "podAnnotations": {"team": "search"},
}
VARIANTS = {"plain": PLAIN, "shared": SHARED, "full": FULL}
KEDA_AND_PROMETHEUS = {
    "ScaledObject",
    "TriggerAuthentication",
    "ServiceMonitor",
    "PodMonitor",
    "PrometheusRule",
}
"""Kinds of other projects, whose schemas aren't the API's: looked at by hand below."""


def render(*values: dict[str, Any], chart: Path = CHART) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("render.py")), str(chart)],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def parsed(found: dict[str, Any]) -> list[dict[str, Any]]:
    assert found["error"] == ""
    return [
        document
        for name, text in found["files"].items()
        if name.endswith(".yaml")
        for document in yaml.safe_load_all(text)
        if document
    ]


@cache
def _all() -> dict[str, list[dict[str, Any]]]:
    return dict(zip(VARIANTS, map(parsed, render(*VARIANTS.values())), strict=True))


@pytest.fixture(params=VARIANTS)
def documents(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return _all()[request.param]


def of_kind(documents: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [d for d in documents if d["kind"] in kinds]


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for document in of_kind(documents, "Deployment", "Job"):
        yield document["metadata"]["name"], document["spec"]["template"]


def containers(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods(documents):
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            yield f"{name}/{container['name']}", container


def named(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = (d for d in of_kind(documents, kind) if d["metadata"]["name"] == name)
    return found


@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_every_document_is_what_the_api_takes(documents: list[dict[str, Any]], version: str) -> None:
    for document in documents:
        if document["kind"] not in KEDA_AND_PROMETHEUS:
            kubernetes_validate.validate(document, version, strict=True)


def test_a_field_that_the_api_does_not_have_is_found(tmp_path: Path) -> None:
    copy = shutil.copytree(CHART, tmp_path / "groundwork")
    helpers = copy / "templates" / "_helpers.tpl"
    helpers.write_text(helpers.read_text().replace("readOnlyRootFilesystem", "readOnlyRootFileSystem"))
    found = named(parsed(render(PLAIN, chart=copy)[0]), "Deployment", "acme-web")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(found, "1.37", strict=True)


def test_all_parts_are_there() -> None:
    plain = {(d["kind"], d["metadata"]["name"]) for d in _all()["plain"]}
    assert plain == {
        ("ConfigMap", "acme-settings"),
        ("Job", "acme-migrate"),
        ("Deployment", "acme-web"),
        ("Deployment", "acme-worker"),
        ("Service", "acme-web"),
        ("PodDisruptionBudget", "acme-web"),
        ("PodDisruptionBudget", "acme-worker"),
        ("NetworkPolicy", "acme-web"),
        ("NetworkPolicy", "acme-worker"),
        ("NetworkPolicy", "acme-migrate"),
    }
    full = {(d["kind"], d["metadata"]["name"]) for d in _all()["full"]}
    assert full - plain == {
        ("Secret", "acme-secret"),
        ("Ingress", "acme-web"),
        ("HorizontalPodAutoscaler", "acme-web"),
        ("ScaledObject", "acme-worker"),
        ("TriggerAuthentication", "acme-queue"),
        ("ServiceMonitor", "acme-web"),
        ("PodMonitor", "acme-worker"),
        ("PrometheusRule", "acme"),
    }


def test_commands_are_those_of_the_product(documents: list[dict[str, Any]]) -> None:
    commands = {name: container.get("command") for name, container in containers(documents)}
    assert commands["acme-web/web"] is None  # the image's own
    assert len(commands) >= 3
    for command in filter(None, commands.values()):
        assert command[:2] == ["python", "manage.py"]
        name, given = command[2], command[3:]
        found: Any = load_command_class(get_commands()[name], name)
        _, unknown = found.create_parser("manage.py", name).parse_known_args(given)
        assert unknown == []


def test_settings_are_those_of_the_product(documents: list[dict[str, Any]]) -> None:
    config = named(documents, "ConfigMap", "acme-settings")["data"]
    assert set(config) <= set(variables.VARIABLES)
    for name, value in config.items():
        env.get(name, {name: value})
    own = {"HOME"}
    for _, container in containers(documents):
        given = {e["name"]: e["value"] for e in container["env"]}
        assert set(given) - own <= set(variables.VARIABLES)
    # The Job runs before the ConfigMap is there, and has the same.
    job = named(documents, "Job", "acme-migrate")["spec"]["template"]["spec"]["containers"][0]
    assert {e["name"]: e["value"] for e in job["env"] if e["name"] not in own} == config


def test_probes_ask_for_addresses_that_there_are(documents: list[dict[str, Any]]) -> None:
    server = ProbeServer(WorkerHealth(lambda: False), "127.0.0.1", 0)
    server.start()
    seen = 0
    try:
        for name, container in containers(documents):
            ports = {p["name"]: p["containerPort"] for p in container.get("ports", [])}
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                if kind not in container:
                    continue
                seen += 1
                get = container[kind]["httpGet"]
                if name == "acme-web/web":
                    assert ports[get["port"]] == 8000
                    assert resolve(get["path"]).url_name in {"healthz", "readyz"}
                else:
                    config = named(documents, "ConfigMap", "acme-settings")["data"]
                    assert str(ports[get["port"]]) == config["GROUNDWORK_WORKER_HEALTH_PORT"]
                    assert config["GROUNDWORK_WORKER_HEALTH_HOST"] == "0.0.0.0"
                    asked = HTTPConnection("127.0.0.1", server.server_port)
                    asked.request("GET", get["path"])
                    assert asked.getresponse().status in {200, 503}
                    asked.close()
    finally:
        server.shutdown()
        server.server_close()
    assert seen == 6


@pytest.mark.parametrize("hosts", ["kb.example.org,x", ".example.org", "*", " kb.example.org , x"])
def test_probes_use_a_name_that_the_web_server_answers_to(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = render({**PLAIN, "config": {**STORE, "GROUNDWORK_ALLOWED_HOSTS": hosts}})
    web = named(parsed(found), "Deployment", "acme-web")["spec"]["template"]["spec"]["containers"][0]
    monkeypatch.setenv("GROUNDWORK_ALLOWED_HOSTS", hosts)
    headers = web["readinessProbe"]["httpGet"]["httpHeaders"]
    assert headers == [{"name": "Host", "value": healthcheck.probe_host()}]


def test_whatever_is_named_is_there(documents: list[dict[str, Any]]) -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(documents)}

    def chosen(selector: dict[str, str]) -> list[str]:
        return [name for name, have in labels.items() if selector.items() <= have.items()]

    for d in of_kind(documents, "Deployment"):
        assert chosen(d["spec"]["selector"]["matchLabels"]) == [d["metadata"]["name"]]
    for d in of_kind(documents, "PodDisruptionBudget"):
        assert chosen(d["spec"]["selector"]["matchLabels"]) == [d["metadata"]["name"]]
    for d in of_kind(documents, "NetworkPolicy"):
        assert chosen(d["spec"]["podSelector"]["matchLabels"]) == [d["metadata"]["name"]]
    for d in of_kind(documents, "Service"):
        assert chosen(d["spec"]["selector"]) == ["acme-web"]
        web = named(documents, "Deployment", "acme-web")["spec"]["template"]["spec"]["containers"][0]
        assert {p["targetPort"] for p in d["spec"]["ports"]} == {p["name"] for p in web["ports"]}
    for d in of_kind(documents, "HorizontalPodAutoscaler", "ScaledObject"):
        named(documents, "Deployment", d["spec"]["scaleTargetRef"]["name"])
    for d in of_kind(documents, "Ingress"):
        backend = d["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
        ports = named(documents, "Service", backend["name"])["spec"]["ports"]
        assert backend["port"]["name"] in {p["name"] for p in ports}
    for d in of_kind(documents, "ServiceMonitor"):
        service = named(documents, "Service", "acme-web")
        assert d["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    secrets = {d["metadata"]["name"] for d in of_kind(documents, "Secret")} or {"groundwork"}
    for _, container in containers(documents):
        for source in container["envFrom"]:
            if "configMapRef" in source:
                named(documents, "ConfigMap", source["configMapRef"]["name"])
            else:
                assert source["secretRef"]["name"] in secrets
    for name, pod in pods(documents):
        volumes = {v["name"] for v in pod["spec"]["volumes"]}
        for other, container in containers(documents):
            if other.startswith(name):
                assert {m["name"] for m in container["volumeMounts"]} == volumes == {"data", "tmp"}


def test_services_put_no_variables_into_pods(documents: list[dict[str, Any]]) -> None:
    """A release named groundwork has a Service groundwork-web, of which Kubernetes tells in GROUNDWORK_WEB_PORT."""
    for _, pod in pods(documents):
        assert pod["spec"]["enableServiceLinks"] is False
    with pytest.raises(env.SettingsError, match="GROUNDWORK_WEB_PORT"):
        env.refuse_unknown({"GROUNDWORK_WEB_PORT": "tcp://10.0.0.1:80"})


def test_a_worker_has_the_time_that_its_setting_gives_answers() -> None:
    longer = {**PLAIN, "config": {**PLAIN["config"], "GROUNDWORK_DRAIN_SECONDS": "600"}}
    graces = [
        named(parsed(one), "Deployment", "acme-worker")["spec"]["template"]["spec"][
            "terminationGracePeriodSeconds"
        ]
        for one in render(PLAIN, longer)
    ]
    assert graces == [33, 630]


def test_a_service_past_the_proxy_is_taken_when_no_proxy_is_trusted_or_nobody_else_reaches_it() -> None:
    untrusting = {**PLAIN["config"], "GROUNDWORK_TRUST_PROXY": "0"}
    for found in render(
        {**PLAIN, "service": {"type": "LoadBalancer"}, "config": untrusting},
        {**PLAIN, "service": {"type": "LoadBalancer", "onlyProxyReaches": True}},
    ):
        assert named(parsed(found), "Service", "acme-web")["spec"]["type"] == "LoadBalancer"


def test_pods_carry_what_the_operator_adds() -> None:
    more: dict[str, Any] = {
        "podLabels": {"team": "search", "app.kubernetes.io/component": "stolen"},
        "extraVolumes": [{"name": "ca", "configMap": {"name": "own-ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/own-ca", "readOnly": True}],
    }
    documents = parsed(render({**PLAIN, **more})[0])
    seen = list(pods(documents))
    assert len(seen) == 3
    for name, pod in seen:
        assert pod["metadata"]["labels"]["team"] == "search"
        assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == name.removeprefix("acme-")
        assert more["extraVolumes"][0] in pod["spec"]["volumes"]
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            assert more["extraVolumeMounts"][0] in container["volumeMounts"]
    for document in documents:
        kubernetes_validate.validate(document, "1.37", strict=True)


def test_pods_are_made_again_when_the_charts_own_secret_changes() -> None:
    changed = json.loads(json.dumps(FULL))
    changed["secret"]["values"]["GROUNDWORK_SECRET_KEY"] = "hidden-3"
    sums = []
    for found in render(FULL, changed):
        made = named(parsed(found), "Deployment", "acme-web")["spec"]["template"]["metadata"]["annotations"]
        assert made["team"] == "search"
        sums.append(made["checksum/secret"])
    assert sums[0] != sums[1]
    plain = named(_all()["plain"], "Deployment", "acme-web")["spec"]["template"]["metadata"]["annotations"]
    assert "checksum/secret" not in plain


def test_pods_of_the_cluster_may_be_reached_where_address_ranges_do_not_name_them() -> None:
    for policy in of_kind(_all()["plain"], "NetworkPolicy"):
        assert {"namespaceSelector": {}} in policy["spec"]["egress"][0]["to"]


def test_an_autoscaled_deployment_has_no_fixed_count() -> None:
    for name in ("acme-web", "acme-worker"):
        assert named(_all()["plain"], "Deployment", name)["spec"]["replicas"] == 2
        assert "replicas" not in named(_all()["full"], "Deployment", name)["spec"]


def test_pods_have_few_rights(documents: list[dict[str, Any]]) -> None:
    for _, pod in pods(documents):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert f"--uid {spec['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert all("hostPath" not in v for v in spec["volumes"])
    for _, container in containers(documents):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} == set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]


def test_a_secret_is_in_the_secret_alone() -> None:
    assert of_kind(_all()["plain"], "Secret") == []
    full = _all()["full"]
    secret = named(full, "Secret", "acme-secret")
    assert secret["stringData"] == FULL["secret"]["values"]
    elsewhere = json.dumps([d for d in full if d is not secret])
    assert "hidden" not in elsewhere


def test_what_runs_before_needs_only_what_is_there_before() -> None:
    """Helm makes everything else after the hooks."""
    weights = {
        (d["kind"], d["metadata"]["name"]): int(d["metadata"]["annotations"]["helm.sh/hook-weight"])
        for d in _all()["full"]
        if "helm.sh/hook" in d["metadata"].get("annotations", {})
    }
    assert set(weights) == {
        ("Secret", "acme-secret"),
        ("NetworkPolicy", "acme-migrate"),
        ("Job", "acme-migrate"),
    }
    job = weights.pop(("Job", "acme-migrate"))
    assert all(weight < job for weight in weights.values())
    container = named(_all()["full"], "Job", "acme-migrate")["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": "acme-secret"}}]


def test_pods_share_a_folder_or_fill_their_own() -> None:
    for name in ("acme-web", "acme-worker"):
        own = named(_all()["plain"], "Deployment", name)["spec"]["template"]["spec"]
        shared = named(_all()["shared"], "Deployment", name)["spec"]["template"]["spec"]
        assert own["volumes"][0] == {"name": "data", "emptyDir": {}}
        assert [c["command"][2] for c in own["initContainers"]] == ["collectstatic", "embedder_prepare"]
        assert shared["volumes"][0]["persistentVolumeClaim"] == {"claimName": "shared"}
        assert "initContainers" not in shared
    data = named(_all()["plain"], "ConfigMap", "acme-settings")["data"]["GROUNDWORK_DATA_DIR"]
    assert data.startswith("/data/")  # a folder below the mount, which is root's, can be closed to others


def without(*path: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(PLAIN))
    at = values
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return values


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (without("secret"), "Set secret.existing"),
        (without("config", "GROUNDWORK_FILES_URL"), "Set config.GROUNDWORK_FILES_URL"),
        (without("config", "GROUNDWORK_ALLOWED_HOSTS"), "Set config.GROUNDWORK_ALLOWED_HOSTS"),
        ({**PLAIN, "config": {**PLAIN["config"], "DATABASE_URL": "x"}}, "config"),
        ({**PLAIN, "worker": {"replica": 3}}, "replica"),
        ({**PLAIN, "ingress": {"enabled": True}}, "Set ingress.host"),
        ({**PLAIN, "service": {"type": "NodePort"}}, "config.GROUNDWORK_TRUST_PROXY is 1"),
        (
            {
                **PLAIN,
                "config": {**PLAIN["config"], "GROUNDWORK_TRUST_PROXY": "Yes"},
                "service": {"type": "LoadBalancer"},
            },
            "config.GROUNDWORK_TRUST_PROXY is 1",
        ),
        (
            {**FULL, "secret": {"values": {"DATABASE_URL": "postgresql://u:p@db/x"}}},
            "set secret.values.GROUNDWORK_METRICS_TOKEN",
        ),
        ({**PLAIN, "serviceMonitor": {"enabled": True, "path": "metrics"}}, "serviceMonitor/path"),
        ({**PLAIN, "prometheusRule": {"enable": True}}, "enable"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], words: str) -> None:
    (found,) = render(values)
    assert words in found["error"]


def test_monitors_ask_where_metrics_are_told_with_the_token_of_the_pods() -> None:
    plain, full = _all()["plain"], _all()["full"]
    assert of_kind(plain, "ServiceMonitor", "PodMonitor", "PrometheusRule") == []
    web = named(full, "ServiceMonitor", "acme-web")["spec"]
    worker = named(full, "PodMonitor", "acme-worker")["spec"]
    secret = named(full, "Secret", "acme-secret")["stringData"]
    ports = {name: {p["name"] for p in container.get("ports", [])} for name, container in containers(full)}
    for monitor, (endpoint,), pod in (
        (web, web["endpoints"], "acme-web/web"),
        (worker, worker["podMetricsEndpoints"], "acme-worker/worker"),
    ):
        assert endpoint["port"] in ports[pod]
        assert endpoint["path"] == PATH
        credentials = endpoint["authorization"]["credentials"]
        assert credentials["name"] == "acme-secret"
        assert credentials["key"] in secret
        assert credentials["key"] in variables.VARIABLES
        assert monitor["jobLabel"] == "app.kubernetes.io/name"
    (pods_of_worker,) = (p["metadata"]["labels"] for n, p in pods(full) if n == "acme-worker")
    assert worker["selector"]["matchLabels"].items() <= pods_of_worker.items()
    assert named(full, "PodMonitor", "acme-worker")["metadata"]["labels"]["release"] == "prometheus"


def test_rules_of_the_chart_are_those_of_the_file() -> None:
    rule = named(_all()["full"], "PrometheusRule", "acme")
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.django_db
def test_workers_are_scaled_by_the_age_of_the_queue() -> None:
    scaled = named(_all()["full"], "ScaledObject", "acme-worker")["spec"]
    trigger = scaled["triggers"][0]
    assert scaled["minReplicaCount"] >= 1  # what is stuck is swept by a worker that runs
    assert trigger["authenticationRef"]["name"] == "acme-queue"
    reference = named(_all()["full"], "TriggerAuthentication", "acme-queue")["spec"]["secretTargetRef"][0]
    assert (reference["parameter"], reference["key"]) == ("connection", "DATABASE_URL")

    def age() -> float:
        with as_login_role(), connection.cursor() as cursor:
            cursor.execute(trigger["metadata"]["query"])
            return float(cursor.fetchone()[0])

    assert age() == 0
    job: Callable[..., Any] = Job.objects.create
    for seconds, status in ((90, "queued"), (400, "succeeded"), (-60, "queued")):
        tenant = make_tenant()
        with tenant_scope(tenant.pk):
            job(
                tenant=tenant,
                kind="x",
                status=status,
                run_after=TransactionNow() - timedelta(seconds=seconds),
            )
    assert age() == 90
