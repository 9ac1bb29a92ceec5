"""Objects of a cluster of tests: versions, selectors, watches, and what its controllers do."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.kubernetes.operators import (
    OPERATORS,
    broken_rule,
    operator_pods,
    operator_status,
)

NAMESPACE = "tuning"
_KINDS = {
    "jobs": ("batch/v1", "Job", "jobs.batch"),
    "pods": ("v1", "Pod", "pods"),
    "secrets": ("v1", "Secret", "secrets"),
    "events": ("v1", "Event", "events"),
    "resourcequotas": ("v1", "ResourceQuota", "resourcequotas"),
    "namespaces": ("v1", "Namespace", "namespaces"),
    "configmaps": ("v1", "ConfigMap", "configmaps"),
    "serviceaccounts": ("v1", "ServiceAccount", "serviceaccounts"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses.scheduling"),
}
_OPERATED = {one.plural for one in OPERATORS}
_KINDS |= {
    one.plural: (one.api_version, one.kind, f"{one.plural}.{one.group}") for one in OPERATORS
}
OVER = {"Succeeded", "Failed"}


class RefusedError(Exception):
    """Refusal with the Status object that the API server answers with."""

    def __init__(self, code: int, reason: str, message: str, causes: object = None) -> None:
        super().__init__(message)
        self.code = code
        details = {} if causes is None else {"causes": causes}
        self.status = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code,
        }  # fmt: skip


def missing(resource: str, name: str) -> RefusedError:
    return RefusedError(404, "NotFound", f'{_KINDS[resource][2]} "{name}" not found')


def merge_patch(base: object, patch: object) -> Any:
    """Return an object after a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


class ClusterObjects:
    """Objects of one namespace, with job controller, quota and garbage collection."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.closed = False
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._history: list[tuple[int, str, str, dict[str, Any]]] = []
        self._numbers = itertools.count(1)
        self._version = 100
        self._oldest = 0
        """A watch that begins before this version is refused."""
        self.create("namespaces", {"metadata": {"name": NAMESPACE}})

    # Objects

    def create(self, resource: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a new object."""
        with self.changed:
            item = copy.deepcopy(dict(given))
            metadata = item.setdefault("metadata", {})
            name = metadata.setdefault("name", f"{resource}-{next(self._numbers)}")
            if (resource, name) in self._objects:
                words = f'{_KINDS[resource][2]} "{name}" already exists'
                raise RefusedError(409, "AlreadyExists", words)
            broken = broken_rule(resource, item)
            if broken:
                words = f'{_KINDS[resource][1]} "{name}" is invalid: {broken}'
                raise RefusedError(422, "Invalid", words)
            item["apiVersion"], item["kind"], _ = _KINDS[resource]
            metadata |= {
                "namespace": NAMESPACE,
                "uid": f"uid-{next(self._numbers)}",
                "creationTimestamp": _now(),
            }
            if resource == "pods":
                item.setdefault("status", {"phase": "Pending"})
            if resource == "jobs" or resource in _OPERATED:
                item.setdefault("status", {})
            self._store("ADDED", resource, name, item)
            self._reconcile()
            return copy.deepcopy(self._objects.get((resource, name), item))

    def get(self, resource: str, name: str) -> dict[str, Any]:
        with self.changed:
            if (resource, name) not in self._objects:
                raise missing(resource, name)
            return copy.deepcopy(self._objects[resource, name])

    def list(
        self, resource: str, labels: str = "", fields: str = ""
    ) -> tuple[list[dict[str, Any]], int]:
        """Return the objects that selectors choose, and the version of the list."""
        with self.changed:
            found = [
                copy.deepcopy(item)
                for (kind, _), item in sorted(self._objects.items())
                if kind == resource and _matches(item, labels, fields)
            ]
            return found, self._version

    def patch(self, resource: str, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        with self.changed:
            item: dict[str, Any] = merge_patch(self.get(resource, name), dict(patch))
            self._store("MODIFIED", resource, name, item)
            self._reconcile()
            return copy.deepcopy(item)

    def delete(self, resource: str, name: str, grace_s: float | None = None) -> None:
        """Delete an object; a pod of a node stays until its kubelet has ended it."""
        with self.changed:
            item = self.get(resource, name)
            if resource == "pods" and grace_s != 0 and _is_on_a_node(item):
                stamp = {"metadata": {"deletionTimestamp": _now()}}
                if "deletionTimestamp" not in item["metadata"]:
                    self._store("MODIFIED", resource, name, merge_patch(item, stamp))
            else:
                self._remove(resource, name)
            self._reconcile()

    def forget_history(self) -> None:
        """Let watches of earlier versions fail with 410, as after a compaction."""
        with self.changed:
            self._version += 1
            self._oldest = self._version
            self.changed.notify_all()

    def close(self) -> None:
        """End all watches."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def watch(
        self, resource: str, since: int, labels: str, limit_s: float
    ) -> Iterator[dict[str, Any]]:
        """Yield events of objects after a version."""
        deadline_s = time.monotonic() + limit_s
        while True:
            with self.changed:
                if since < self._oldest:
                    gone = RefusedError(410, "Expired", f"too old resource version: {since}")
                    yield {"type": "ERROR", "object": gone.status}
                    return
                news = [one for one in self._history if one[0] > since]
                if not news:
                    left_s = deadline_s - time.monotonic()
                    if self.closed or left_s <= 0:
                        return
                    self.changed.wait(left_s)
                    continue
            for version, kind, where, item in news:
                since = version
                if where == resource and _matches(item, labels, ""):
                    yield {"type": kind, "object": item}

    def _store(self, kind: str, resource: str, name: str, item: dict[str, Any]) -> None:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._objects[resource, name] = item
        self._history.append((self._version, kind, resource, copy.deepcopy(item)))
        self.changed.notify_all()

    def _remove(self, resource: str, name: str) -> None:
        item = self._objects[resource, name]
        self._store("DELETED", resource, name, item)
        del self._objects[resource, name]

    # Controllers

    def _reconcile(self) -> None:
        """Do what job controller and garbage collection do after a change."""
        self._collect_garbage()
        for (resource, name), job in list(self._objects.items()):
            is_present = self._objects.get((resource, name)) is job  # not after an inner change
            if resource == "jobs" and is_present and not job["spec"].get("suspend"):
                self._reconcile_job(name, job)
            if resource in _OPERATED and is_present:
                self._reconcile_operated(resource, name, job)

    def _collect_garbage(self) -> None:
        known = {item["metadata"]["uid"] for item in self._objects.values()}
        for (resource, name), item in list(self._objects.items()):
            owners = item["metadata"].get("ownerReferences") or []
            if (resource, name) not in self._objects:
                continue  # it went with another one
            if owners and not any(owner["uid"] in known for owner in owners):
                if resource == "pods" and item["metadata"].get("deletionTimestamp"):
                    continue
                self.delete(resource, name)

    def _reconcile_job(self, name: str, job: dict[str, Any]) -> None:
        if job["status"].get("conditions"):
            return
        pods = [one for kind, one in list(self._objects.items()) if _owns(job, kind[0], one)]
        phases = {pod["status"].get("phase") for pod in pods}
        if "Succeeded" in phases:
            self._end(name, job, "Complete", "", "")
        elif "Failed" in phases or (not pods and job["status"].get("startTime")):
            words = "Job has reached the specified backoff limit"
            self._end(name, job, "Failed", "BackoffLimitExceeded", words)
        elif not pods:
            self._create_pod(name, job)

    def _reconcile_operated(self, resource: str, name: str, item: dict[str, Any]) -> None:
        """Do what the operator of a kind of object does."""
        pods = [one for kind, one in list(self._objects.items()) if _owns(item, kind[0], one)]
        if not pods and not item["status"].get("startTime"):
            item["status"]["startTime"] = _now()
            owner = {"apiVersion": item["apiVersion"], "kind": item["kind"], "name": name}
            owner |= {"uid": item["metadata"]["uid"], "controller": True}
            for pod in operator_pods(resource, item):
                pod["metadata"]["ownerReferences"] = [owner]
                self.create("pods", pod)
            return
        status = operator_status(resource, item, pods)
        if status is not None:
            self.patch(resource, name, {"status": status})
            for pod in pods:
                if pod["status"].get("phase") not in OVER:
                    self.delete("pods", pod["metadata"]["name"])

    def _end(self, name: str, job: dict[str, Any], kind: str, reason: str, words: str) -> None:
        condition = {"type": kind, "status": "True", "reason": reason, "message": words}
        self.patch("jobs", name, {"status": {"conditions": [condition]}})

    def _create_pod(self, name: str, job: dict[str, Any]) -> None:
        words = self._over_quota(f"{name}-x7k2p")
        if words:
            known = [one for kind, one in self._objects.items() if kind[0] == "events"]
            if not any(one["message"] == words for one in known):
                self.warn("Job", name, "FailedCreate", words)
            return
        template = copy.deepcopy(job["spec"]["template"])
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
        owner["uid"] = job["metadata"]["uid"]
        template["metadata"] |= {"name": f"{name}-x7k2p", "ownerReferences": [owner]}
        job["status"]["startTime"] = _now()
        self.create("pods", template)

    def _over_quota(self, pod: str) -> str:
        used = sum(
            kind == "pods" and item["status"].get("phase") not in OVER
            for (kind, _), item in self._objects.items()
        )
        for (kind, name), quota in self._objects.items():
            limit = quota.get("spec", {}).get("hard", {}).get("pods")
            if kind == "resourcequotas" and limit is not None and used >= int(limit):
                return (
                    f'Error creating: pods "{pod}" is forbidden: exceeded quota: {name}, '
                    f"requested: pods=1, used: pods={used}, limited: pods={limit}"
                )
        return ""

    def warn(self, kind: str, name: str, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        involved = {"kind": kind, "name": name, "namespace": NAMESPACE}
        event = {"type": "Warning", "reason": reason, "message": message}
        self.create("events", {**event, "involvedObject": involved, "lastTimestamp": _now()})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_on_a_node(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in OVER


def _owns(job: Mapping[str, Any], resource: str, item: Mapping[str, Any]) -> bool:
    owners = item["metadata"].get("ownerReferences") or []
    return resource == "pods" and any(one["uid"] == job["metadata"]["uid"] for one in owners)


def _matches(item: Mapping[str, Any], labels: str, fields: str) -> bool:
    own = item["metadata"].get("labels") or {}
    for part in filter(None, labels.split(",")):
        name, _, value = part.partition("=")
        if own.get(name) != value:
            return False
    for part in filter(None, fields.split(",")):
        name, _, value = part.partition("=")
        if str(item.get(name, "")) != value:
            return False
    return True
