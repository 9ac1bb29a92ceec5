"""Objects of the rendered chart: by kind and name, their containers, secrets and policies."""

from typing import Any

from tests.support.deployment import Refused, render_chart

STORE = {"endpoint": "http://s3:9000", "accessKey": "who", "secretKey": "hidden"}
"""Values of an object store, without which the chart is not rendered."""
FLEET = {"s3": STORE, "fleet": {"enabled": True}}
FLEET_ELSEWHERE = {
    "s3": STORE,
    "fleet": {
        "enabled": True,
        "platforms": ["kubernetes", "kubeflow", "frameworkcontroller", "adl"],
        "agentsNamespace": "agents",
        "frontHost": "nni.example.org",
        "frontPort": 30443,
        "service": {"type": "NodePort"},
        "volumes": [{"name": "ssh", "secret": {"secretName": "fleet-ssh"}}],
        "volumeMounts": [{"name": "ssh", "mountPath": "/var/lib/nni/.ssh"}],
    },
    "networkPolicy": {"fleetFrom": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
}
"""Values of a fleet with all platforms of the cluster, which machines elsewhere call."""
FLEET_WITHOUT_RIGHTS = {
    "s3": STORE,
    "fleet": {"enabled": True, "platforms": []},
    "nats": {"replicas": 1},
    "tls": {"enabled": False},
    "observability": {"metrics": True},
}
"""Values of a fleet, in plain text, that has no platform of the cluster."""


def named(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a kind by name."""
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def workloads(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects that have pods."""
    return [one for one in objects if one["kind"] in {"Deployment", "StatefulSet"}]


def container(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a workload."""
    (one,) = workload["spec"]["template"]["spec"]["containers"]
    assert isinstance(one, dict)
    return one


def variables(workload: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a workload's container that have a value."""
    return {one["name"]: one["value"] for one in container(workload)["env"] if "value" in one}


def secret_volume(workload: dict[str, Any], volume: str) -> dict[str, Any]:
    """Return a volume of secrets."""
    volumes = workload["spec"]["template"]["spec"]["volumes"]
    (one,) = (one["secret"] for one in volumes if one["name"] == volume)
    assert isinstance(one, dict)
    return one


def secret_items(workload: dict[str, Any], volume: str) -> dict[str, str]:
    """Return the keys of a volume of secrets, by name of file."""
    return {item["path"]: item["key"] for item in secret_volume(workload, volume)["items"]}


def peers_of(rule: dict[str, Any], direction: str) -> list[str]:
    """Return the components that a rule of a policy names; empty texts: other pods."""
    selectors = [one["podSelector"].get("matchLabels", {}) for one in rule[direction]]
    return [one.get("app.kubernetes.io/component", "") for one in selectors]


def refusal(values: dict[str, Any]) -> str:
    """Return the reason for which the chart is not rendered with these values."""
    answer = render_chart(values)
    assert isinstance(answer, Refused)
    return answer.reason
