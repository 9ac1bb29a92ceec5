"""The fleet of the chart: its pod, what it shares with bus and managers, and who may call it."""

import json
from typing import Any

import jsonschema
import pytest

from svc_common.messaging.permissions import (
    compressor_user,
    dispatcher_user,
    fleet_user,
    manager_user,
    nas_user,
    reloader_user,
    runner_user,
    users_block,
)
from tests.support.chart import (
    FLEET,
    FLEET_ELSEWHERE,
    FLEET_WITHOUT_RIGHTS,
    STORE,
    container,
    named,
    peers_of,
    refusal,
    secret_items,
    variables,
    workloads,
)
from tests.support.deployment import CHART, IMAGES, chart_objects, read_compose, read_image

AGENTS = {"matchExpressions": [{"key": "nni-installation", "operator": "Exists"}]}


def fleet_values(**values: Any) -> dict[str, Any]:
    return {"s3": STORE, "fleet": {"enabled": True, **values}}


def mounts(workload: dict[str, Any], claim: str) -> list[tuple[str, bool]]:
    """Return where a workload has a claim, and whether it can only read it."""
    spec = workload["spec"]["template"]["spec"]
    volumes = {
        one["name"]
        for one in spec["volumes"]
        if one.get("persistentVolumeClaim", {}).get("claimName") == claim
    }
    return [
        (one["mountPath"], one.get("readOnly", False))
        for one in container(workload)["volumeMounts"]
        if one["name"] in volumes
    ]


def test_chart_without_a_fleet_has_nothing_of_it() -> None:
    objects = chart_objects({"s3": STORE})

    names = [one["metadata"]["name"] for one in objects]

    assert not [name for name in names if "fleet" in name or "agents" in name or "pool" in name]
    assert "include" not in named(objects, "ConfigMap")["demo-nats"]["data"]["users.conf"]
    assert "reloader" not in named(objects, "ConfigMap")["demo-nats"]["data"]["users.conf"]


def test_fleet_is_started_as_in_compose() -> None:
    workload = named(chart_objects(FLEET), "Deployment")["demo-fleet"]
    one, compose = container(workload), read_compose()["services"]["fleet"]
    image = read_image(IMAGES["trial-runner"])
    pod = workload["spec"]["template"]["spec"]["securityContext"]

    assert one["command"] == compose["entrypoint"]
    assert one["args"] == compose["command"]
    assert f"{pod['runAsUser']}:{pod['runAsGroup']}" == compose["user"]
    assert pod["runAsNonRoot"]
    assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert image.environment["NNI_HOME"] in {mount["mountPath"] for mount in one["volumeMounts"]}
    assert set(compose["environment"]) - set(variables(workload)) <= {
        *("NNI_METRICS", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    }
    assert workload["spec"]["replicas"] == 1
    assert workload["spec"]["strategy"] == {"type": "Recreate"}


def test_fleet_has_only_its_own_secrets() -> None:
    workload = named(chart_objects(FLEET), "Deployment")["demo-fleet"]

    assert set(secret_items(workload, "secrets").values()) == {"token", "nats-fleet-password"}
    assert secret_items(workload, "tls")["tls.key"] == "fleet.key"
    assert not [name for name in variables(workload) if "S3" in name]


def test_users_that_the_fleet_writes_are_read_by_bus_and_manager_and_by_no_one_else() -> None:
    objects = chart_objects(FLEET)
    by_name = {container(one)["name"]: one for one in workloads(objects)}
    folder = variables(by_name["fleet"])["NNI_AGENT_USERS"]

    mounted = {name: mounts(one, "demo-agents") for name, one in by_name.items()}

    assert {name: found for name, found in mounted.items() if found} == {
        "nats": [(folder, True)],
        "manager": [(folder, True)],
        "fleet": [(folder, False)],
    }
    assert variables(by_name["manager"])["NNI_AGENT_USERS"] == folder
    claim = named(objects, "PersistentVolumeClaim")["demo-agents"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_secrets_of_pools_are_shared_by_manager_and_fleet_and_by_no_one_else() -> None:
    by_name = {container(one)["name"]: one for one in workloads(chart_objects(FLEET))}
    home = read_image(IMAGES["trial-runner"]).environment["NNI_HOME"]

    mounted = {name: mounts(one, "demo-pool-secrets") for name, one in by_name.items()}

    expected = [(f"{home}/pool-secrets", False)]
    assert {name: found for name, found in mounted.items() if found} == {
        "manager": expected,
        "fleet": expected,
    }


def test_bus_knows_the_users_that_the_fleet_writes_and_the_one_that_has_it_read_them() -> None:
    objects = chart_objects(FLEET)
    users_conf = named(objects, "ConfigMap")["demo-nats"]["data"]["users.conf"]
    pod = named(objects, "StatefulSet")["demo-nats"]["spec"]["template"]["spec"]
    (first,) = pod["initContainers"]

    assert (
        users_conf.strip()
        == users_block(
            [
                (manager_user(), "$NNI_NATS_MANAGER_PASSWORD"),
                (dispatcher_user(), "$NNI_NATS_DISPATCHER_PASSWORD"),
                (compressor_user(), "$NNI_NATS_COMPRESSOR_PASSWORD"),
                (nas_user(), "$NNI_NATS_NAS_PASSWORD"),
                (fleet_user(), "$NNI_NATS_FLEET_PASSWORD"),
                (reloader_user(), "$NNI_NATS_FLEET_PASSWORD"),
                (runner_user("pool-local", "local"), "$NNI_NATS_POOL_0_PASSWORD"),
            ],
            "agents/agents.conf",
        ).strip()
    )
    # The included file exists before the fleet has written it for the first time.
    assert first["command"][-1] == ": >>/var/lib/nni/agents/agents.conf"
    assert first["image"] == pod["containers"][0]["image"]
    assert first["securityContext"] == pod["containers"][0]["securityContext"]


def test_agents_get_the_service_of_the_front() -> None:
    objects = chart_objects(FLEET)
    given = variables(named(objects, "Deployment")["demo-fleet"])

    (port,) = named(objects, "Service")["demo-fleet"]["spec"]["ports"]

    assert given["NNI_FRONT_HOST"] == "demo-fleet.prod.svc"
    assert given["NNI_FRONT_PORT"] == str(port["port"]) == "8443"


def test_front_for_machines_elsewhere_has_the_given_host_and_one_port_inside_and_outside() -> None:
    objects = chart_objects(FLEET_ELSEWHERE)
    fleet = named(objects, "Deployment")["demo-fleet"]

    service = named(objects, "Service")["demo-fleet"]["spec"]

    assert service["type"] == "NodePort"
    assert service["ports"] == [{"name": "front", "port": 30443, "nodePort": 30443}]
    assert variables(fleet)["NNI_FRONT_HOST"] == "nni.example.org"
    assert variables(fleet)["NNI_FRONT_PORT"] == "30443"
    assert {"name": "front", "containerPort": 30443} in container(fleet)["ports"]


def test_calls_of_agents_have_a_port_of_the_manager_that_only_the_fleet_may_call() -> None:
    objects = chart_objects(FLEET)
    services, policies = named(objects, "Service"), named(objects, "NetworkPolicy")
    given = variables(named(objects, "Deployment")["demo-fleet"])

    rules = [
        rule
        for rule in policies["demo-manager"]["spec"]["ingress"]
        if {"port": 7506} in rule["ports"]
    ]

    assert given["NNI_MANAGER_GRPC"] == "demo-manager-front:7506"
    assert [one["port"] for one in services["demo-manager-front"]["spec"]["ports"]] == [7506]
    assert 7506 not in [one["port"] for one in services["demo-manager"]["spec"]["ports"]]
    assert [peers_of(rule, "from") for rule in rules] == [["fleet"]]
    calls = policies["demo-fleet-egress"]["spec"]["egress"]
    assert [peers_of(rule, "to") for rule in calls if rule.get("ports") == [{"port": 7506}]] == [
        ["manager"]
    ]


def test_only_started_agents_and_named_machines_call_the_fleet() -> None:
    policies = named(chart_objects(FLEET_ELSEWHERE), "NetworkPolicy")

    (rule,) = policies["demo-fleet"]["spec"]["ingress"]

    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "agents"}}
    started = {"podSelector": AGENTS, "namespaceSelector": namespace}
    assert rule["from"] == [started, {"ipBlock": {"cidr": "192.0.2.0/24"}}]
    assert rule["ports"] == [{"port": 30443}]


def test_started_agents_call_the_front_and_what_is_outside_but_no_metadata_of_the_cloud() -> None:
    objects = chart_objects(FLEET_ELSEWHERE)
    policies = named(objects, "NetworkPolicy")
    ingress, egress = policies["demo-fleet-agents"], policies["demo-fleet-agents-egress"]

    (called,) = ingress["spec"]["ingress"]
    _names, front, others, outside = egress["spec"]["egress"]

    assert ingress["spec"]["podSelector"] == egress["spec"]["podSelector"] == AGENTS
    assert {one["metadata"]["namespace"] for one in (ingress, egress)} == {"agents"}
    assert called["from"] == others["to"] == [{"podSelector": AGENTS}]
    assert peers_of(front, "to") == ["fleet"]
    assert front["ports"] == [{"port": 30443}]
    blocks = {one["ipBlock"]["cidr"]: one["ipBlock"]["except"] for one in outside["to"]}
    assert "169.254.0.0/16" in blocks["0.0.0.0/0"]


def test_rights_are_in_the_namespace_of_the_agents_and_for_the_account_of_the_fleet() -> None:
    objects = chart_objects(FLEET_ELSEWHERE)
    binding = named(objects, "RoleBinding")["demo-fleet"]
    pods = {container(one)["name"]: one["spec"]["template"]["spec"] for one in workloads(objects)}

    assert named(objects, "Role")["demo-fleet"]["metadata"]["namespace"] == "agents"
    assert binding["metadata"]["namespace"] == "agents"
    assert binding["roleRef"]["name"] == "demo-fleet"
    account = {"kind": "ServiceAccount", "name": "demo-fleet", "namespace": "prod"}
    assert binding["subjects"] == [account]
    assert pods["fleet"]["serviceAccountName"] == "demo-fleet"
    tokens = [name for name, pod in pods.items() if pod["automountServiceAccountToken"]]
    assert tokens == ["fleet"]


def test_fleet_without_platforms_of_the_cluster_has_no_rights_in_it() -> None:
    objects = chart_objects(FLEET_WITHOUT_RIGHTS)
    pod = named(objects, "Deployment")["demo-fleet"]["spec"]["template"]["spec"]

    kinds = {one["kind"] for one in objects}

    assert not kinds & {"Role", "RoleBinding", "ServiceAccount"}
    assert not pod["automountServiceAccountToken"]
    assert "demo-fleet-agents" not in named(objects, "NetworkPolicy")


def test_metrics_of_the_fleet_are_served_where_they_are_wanted() -> None:
    objects = chart_objects(FLEET_WITHOUT_RIGHTS)

    policy = named(objects, "NetworkPolicy")["demo-fleet-metrics"]["spec"]

    assert variables(named(objects, "Deployment")["demo-fleet"])["NNI_METRICS"] == "0.0.0.0:9464"
    assert policy["ingress"] == [{"from": [{"podSelector": {}}], "ports": [{"port": 9464}]}]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (fleet_values(service={"type": "LoadBalancer"}), "fleet.frontHost: give the name"),
        (
            fleet_values(frontHost="nni.example.org", service={"type": "LoadBalancer"}),
            "networkPolicy.fleetFrom: name the agents",
        ),
        (
            fleet_values(volumes=[{"name": "agents", "emptyDir": {}}]),
            "fleet.volumes: agents is the name of a volume of the chart",
        ),
    ],
)
def test_values_of_the_fleet_that_cannot_work_are_refused(
    values: dict[str, Any], reason: str
) -> None:
    assert reason in refusal(values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("platforms", ["slurm"]),
        ("agentsNamespace", "Agents"),
        ("frontHost", "https://nni.example.org"),
        ("frontPort", 8081),
        ("service", {"type": "Public"}),
        ("env", [{"name": "NNI_TOKEN", "value": ""}]),
    ],
)
def test_schema_refuses_other_values_of_the_fleet(name: str, value: object) -> None:
    schema = jsonschema.Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))

    (error,) = schema.iter_errors(fleet_values(**{name: value}))

    assert list(error.absolute_path)[:2] == ["fleet", name]
