"""Rights of the fleet's service account in the chart, beside what the adapters call."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.adapters.kubernetes.checks import OBJECT_RIGHTS, RIGHTS
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.chart import FLEET, FLEET_ELSEWHERE, named
from tests.support.deployment import chart_objects
from tests.support.kubernetes.api_server import api_server
from tests.support.kubernetes.operators import OPERATORS
from tests.support.local_platforms import front_context

Right = tuple[str, str, str]
"""API group, resource and verb."""
NAME = agent_name(1)
VERBS = {"POST": "create", "PATCH": "patch"}
NAMES = {
    "image": "registry.example.org/trials:1",
    "imagePullSecrets": ["registry"],
    "serviceAccount": "trials",
    "volumes": [
        {"mountPath": "/data", "persistentVolumeClaim": {"claimName": "data"}},
        {"mountPath": "/settings", "configMap": {"name": "settings"}},
    ],
}
"""Options whose names are compared with the cluster."""


def granted(values: dict[str, Any]) -> set[Right]:
    """Return the rights that the chart gives with some values."""
    rules = named(chart_objects(values), "Role")["demo-fleet"]["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(method: str, url: str) -> Right | None:
    """Return the right of the namespace that a request needs; None: it needs none."""
    parts = urlsplit(url)
    segments = parts.path.strip("/").split("/")
    if "namespaces" not in segments:
        return None
    group = "" if segments[0] == "api" else segments[1]
    resource, *name = segments[segments.index("namespaces") + 2 :] or [""]
    if not resource:
        return None  # the namespace itself, which may be forbidden
    if method == "GET":
        collection = "watch" if "watch" in parse_qs(parts.query) else "list"
        return group, resource, "get" if name else collection
    if method == "DELETE":
        return group, resource, "delete" if name else "deletecollection"
    return group, resource, VERBS[method]


async def used(folder: Path, options: dict[str, Any]) -> set[Right]:
    """Return the rights that the requests of an adapter's whole lifetime need."""
    with api_server() as server:
        for resource, name in (
            ("secrets", "registry"), ("secrets", str(NAME)), ("serviceaccounts", "trials"),
            ("persistentvolumeclaims", "data"), ("configmaps", "settings"),
        ):  # fmt: skip
            server.objects.create(resource, {"metadata": {"name": name}})
        access = {"kubeconfig": str(server.kubeconfig(folder))}
        section = PlatformSection("kubernetes", {**access, **options})
        adapter = KubernetesAdapter(front_context(folder, INSTALLATION, POOL, section))
        assert await adapter.check() == []
        await adapter.prepare()
        assert await adapter.launch([agent_order(NAME)]) == []
        await adapter.agents()
        server.objects.warn("Job", str(NAME), "Tested", "a change")
        server.objects.patch("pods", pod_of(server.objects), {"metadata": {"labels": {"a": "b"}}})
        await adapter.wait_changed()
        await adapter.leftovers()
        await adapter.terminate([NAME])
        await adapter.clean()
        await adapter.aclose()
        return {right for right in map(needed, *zip(*server.requests, strict=True)) if right}


def pod_of(objects: Any) -> str:
    ((pod,), _) = objects.list("pods")
    return str(pod["metadata"]["name"])


async def test_role_allows_every_request_of_the_adapter(tmp_path: Path) -> None:
    found = await used(tmp_path, NAMES)

    assert {("batch", "jobs", "create"), ("", "secrets", "patch"), ("", "pods", "watch")} < found
    assert ("", "secrets", "deletecollection") in found
    assert found <= granted(FLEET)


def test_role_has_no_right_that_neither_requests_nor_checks_need() -> None:
    checked = {(group, resource, verb) for group, resource, verbs in RIGHTS for verb in verbs}
    jobs = {("batch", "jobs", verb) for verb in (*OBJECT_RIGHTS, "get")}
    names = ("secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts")

    assert granted(FLEET) == {
        *checked,
        *jobs,
        *(("", name, "get") for name in names),
        ("", "resourcequotas", "list"),
        ("kueue.x-k8s.io", "localqueues", "get"),
    }


def test_role_allows_the_objects_of_operators_only_where_they_are_platforms() -> None:
    objects = {
        (one.group, one.plural, verb) for one in OPERATORS for verb in (*OBJECT_RIGHTS, "get")
    }

    assert granted(FLEET_ELSEWHERE) == granted(FLEET) | objects
    assert not granted(FLEET) & objects
