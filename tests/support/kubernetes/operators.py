"""What the operators of a cluster of tests do: pods of their objects, and the status at the end.

The shapes are those of the documented custom resources: TFJob and PyTorchJob of the training
operator (v1), Framework of FrameworkController, AdaptDLJob of AdaptDL.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FRAMEWORK_NAME = re.compile(r"[a-z0-9]{1,63}\Z")


@dataclass(frozen=True)
class Operator:
    """Kind of object of an operator."""

    group: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1"


OPERATORS = (
    Operator("kubeflow.org", "TFJob", "tfjobs"),
    Operator("kubeflow.org", "PyTorchJob", "pytorchjobs"),
    Operator("frameworkcontroller.microsoft.com", "Framework", "frameworks"),
    Operator("adaptdl.petuum.com", "AdaptDLJob", "adaptdljobs"),
)
_CONTAINERS = {"tfjobs": "tensorflow", "pytorchjobs": "pytorch"}
_REPLICAS = {"tfjobs": "tfReplicaSpecs", "pytorchjobs": "pytorchReplicaSpecs"}
_KINDS_OF_REPLICA = {
    "tfjobs": {"Chief", "Master", "Worker", "PS", "Evaluator"},
    "pytorchjobs": {"Master", "Worker"},
}


def broken_rule(resource: str, item: Mapping[str, Any]) -> str:
    """Return what an operator or its schema refuses of an object; empty: nothing."""
    if resource == "frameworks":
        names = [item["metadata"]["name"], *(role["name"] for role in item["spec"]["taskRoles"])]
        wrong = [name for name in names if not _FRAMEWORK_NAME.match(name)]
        return f"{wrong[0]} should match '^[a-z0-9]{{1,63}}$'" if wrong else ""
    if resource not in _CONTAINERS:
        return ""
    for kind, replica in item["spec"][_REPLICAS[resource]].items():
        if kind not in _KINDS_OF_REPLICA[resource]:
            return f"{kind} is no replica type"
        containers = [one["name"] for one in replica["template"]["spec"]["containers"]]
        if _CONTAINERS[resource] not in containers:
            return f"there is no container named {_CONTAINERS[resource]} in {kind}"
    return ""


def operator_pods(resource: str, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the pods of an object, as its operator creates them."""
    name = item["metadata"]["name"]
    if resource == "frameworks":
        for role in item["spec"]["taskRoles"]:
            for index in range(role["taskNumber"]):
                pod = _pod(role["task"]["pod"], f"{name}-{role['name']}-{index}")
                variables = {
                    "FC_FRAMEWORK_NAME": name,
                    "FC_TASKROLE_NAME": role["name"],
                    "FC_TASK_INDEX": str(index),
                }
                pod["metadata"].setdefault("annotations", {}).update(variables)
                _add_variables(pod, variables)
                yield pod
    elif resource == "adaptdljobs":
        assert item["spec"]["minReplicas"] == 1
        pod = _pod(item["spec"]["template"], f"{name}-0-0")
        ranks = {"adaptdl/rank": "0", "adaptdl/group": "0", "adaptdl/replicas": "1"}
        pod["metadata"].setdefault("annotations", {}).update(ranks)
        yield pod
    else:
        yield from _replica_pods(resource, name, item["spec"][_REPLICAS[resource]])


def _replica_pods(
    resource: str, name: str, replicas: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    cluster = {
        kind.lower(): [f"{name}-{kind.lower()}-{index}:2222" for index in range(one["replicas"])]
        for kind, one in replicas.items()
    }
    for kind, one in replicas.items():
        for index in range(one["replicas"]):
            pod = _pod(one["template"], f"{name}-{kind.lower()}-{index}")
            labels = pod["metadata"]["labels"]
            labels["training.kubeflow.org/replica-type"] = kind.lower()
            labels["training.kubeflow.org/replica-index"] = str(index)
            task = {"type": kind.lower(), "index": index}
            _add_variables(pod, {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})})
            yield pod
    assert resource in _REPLICAS


def _pod(template: Mapping[str, Any], name: str) -> dict[str, Any]:
    pod = copy.deepcopy(dict(template))
    pod["metadata"]["name"] = name
    return pod


def _add_variables(pod: dict[str, Any], variables: Mapping[str, str]) -> None:
    for container in pod["spec"]["containers"]:
        added = [{"name": name, "value": value} for name, value in variables.items()]
        container["env"] = [*(container.get("env") or ()), *added]


def operator_status(
    resource: str, item: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return the status of an object that is over; None: it is not, or is known to be."""
    old = item["status"]
    if old.get("conditions") or old.get("state") or old.get("phase"):
        return None
    failed = [one["metadata"]["name"] for one in pods if _phase(one) == "Failed"]
    decided = _succeeded(resource, item, pods)
    if pods and not failed and not decided:
        return None
    failure = "" if decided else f"pod {failed[0]} has failed" if failed else "its pod was deleted"
    if resource == "frameworks":
        kind = {"name": "Failed" if failure else "Succeeded"}
        completion = {"type": kind, "phrase": "PodExternalDeleted" if not pods else ""}
        completion["diagnostics"] = failure
        return {"state": "Completed", "attemptStatus": {"completionStatus": completion}}
    if resource == "adaptdljobs":
        phase = {"phase": "Failed", "reason": "PodFailure", "message": failure}
        return phase if failure else {"phase": "Succeeded"}
    name = "Failed" if failure else "Succeeded"
    condition = {"type": name, "status": "True", "reason": f"Job{name}", "message": failure}
    return {"conditions": [condition]}


def _succeeded(resource: str, item: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the pods that decide have succeeded: of the chief, or as policies say."""
    done = [one for one in pods if _phase(one) == "Succeeded"]
    if resource == "frameworks":
        for role in item["spec"]["taskRoles"]:
            limit = role["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"]
            names = [
                one
                for one in done
                if one["metadata"]["annotations"]["FC_TASKROLE_NAME"] == role["name"]
            ]
            if limit != -1 and len(names) >= limit:
                return True
        return bool(pods) and len(done) == len(pods)
    kinds = {one["metadata"]["labels"].get("training.kubeflow.org/replica-type") for one in done}
    return bool(kinds & {"chief", "master", None})


def _phase(pod: Mapping[str, Any]) -> str:
    return str(pod["status"].get("phase", ""))
