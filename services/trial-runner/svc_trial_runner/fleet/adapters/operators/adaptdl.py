"""Platform `adl`: agents as AdaptDLJobs of the AdaptDL scheduler.

An AdaptDLJob has one pod, which is an agent; with `reuseMode: false` it ends after one trial. An
adaptive job may be moved by the scheduler: its trials go on from their last checkpoint.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from svc_trial_runner.fleet.adapters.agent_image import image_problems
from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.adapters.kubernetes.manifests import agent_template, object_metadata
from svc_trial_runner.fleet.adapters.kubernetes.options import (
    KubernetesOptions,
    given_options,
    option_problems,
    parse_options,
    parsed_problems,
)
from svc_trial_runner.fleet.adapters.kubernetes.workloads import (
    FAILED,
    SUCCEEDED,
    Workload,
    WorkloadEnd,
    WorkloadKind,
)
from svc_trial_runner.fleet.domain.agents import AgentOrder, PlatformProblem
from svc_trial_runner.fleet.ports import AdapterContext, PlatformAdapter

ADAPTDL_JOBS: Final = WorkloadKind(
    "adaptdl.petuum.com", "v1", "AdaptDLJob", "adaptdljobs", operator="the AdaptDL scheduler"
)
CHECKPOINT_PATH: Final = "/mnt/adaptdl/checkpoint"
"""Folder of the volume that `checkpoint` asks for."""
_NAMES: Final = {
    "dockerImage": "image",
    "trialCpuNumber": "cpus",
    "trialMemorySize": "memory",
    "trialGpuNumber": "gpus",
}
"""Options of `kubernetes` by the names of this platform."""
_ABSOLUTE: Final = re.compile(r"/[^\x00:]*\Z")


def adl_adapter(context: AdapterContext) -> PlatformAdapter:
    """Return the adapter of the platform `adl`."""
    return KubernetesAdapter(context, AdaptDlWorkload(given_options(context.section)))


class AdaptDlWorkload(Workload):
    """`Workload` of AdaptDLJobs: rules of the options, an agent's manifest, how it has ended.

    Args:
        section: options of the platform, as they are written.
    """

    platform = "adl"
    kind = ADAPTDL_JOBS

    def __init__(self, section: Mapping[str, object]) -> None:
        self._section = {_NAMES.get(name, name): value for name, value in section.items()}
        self._adaptive = section.get("adaptive") is True
        options = parse_options(self._section)
        self.options = replace(
            options,
            namespace=options.namespace or "default",
            more_volumes=tuple(_volumes(self._section)),
        )

    def problems(self) -> list[PlatformProblem]:
        """Return problems of the section's options; see `Workload`."""
        names = {new: old for old, new in _NAMES.items()}
        problems = [
            replace(one, field=names.get(one.field, one.field))
            for one in option_problems(self._section)
        ]
        problems += _own_problems(self._section, self.options)
        return problems or parsed_problems(self.options)

    def manifest(
        self, order: AgentOrder, pool_labels: Mapping[str, str], version: str
    ) -> dict[str, Any]:
        """Return the AdaptDLJob of an agent; see `Workload`."""
        template = agent_template(self.options, order, pool_labels, version)
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": object_metadata(self.options, order, pool_labels, str(order.name)),
            "spec": {
                "minReplicas": 1,
                "maxReplicas": 1,
                "preemptible": self._adaptive,
                "template": template,
            },
        }

    def end(self, item: Mapping[str, Any]) -> WorkloadEnd | None:
        """Return how an AdaptDLJob has ended, whether failed and why; None: it has not."""
        status = item.get("status") or {}
        if status.get("phase") not in {SUCCEEDED, FAILED}:
            return None
        words = f"{status.get('reason', '')}: {status.get('message', '')}".strip(": ")
        return WorkloadEnd(status["phase"] == FAILED, words)


def _volumes(
    section: Mapping[str, object],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the volumes of `storage` and `checkpoint`, each with its mount."""
    storage, checkpoint = section.get("storage"), section.get("checkpoint")
    if isinstance(storage, Mapping):
        source = {"server": storage.get("server"), "path": storage.get("path")}
        mount = {"name": "nni-storage", "mountPath": storage.get("containerMountPath")}
        yield {"name": "nni-storage", "nfs": source}, mount
    if isinstance(checkpoint, Mapping):
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": checkpoint.get("storageClass"),
            "resources": {"requests": {"storage": checkpoint.get("storageSize")}},
        }
        volume = {"name": "nni-checkpoint", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
        yield volume, {"name": "nni-checkpoint", "mountPath": CHECKPOINT_PATH}


def _own_problems(
    section: Mapping[str, object], options: KubernetesOptions
) -> Iterator[PlatformProblem]:
    yield from image_problems("dockerImage", options.image)
    adaptive = section.get("adaptive")
    if adaptive is not None and not isinstance(adaptive, bool):
        yield PlatformProblem("adaptive", "must be true or false", repr(adaptive)[:80])
    wanted = {
        "storage": ("server", "path", "containerMountPath"),
        "checkpoint": ("storageClass", "storageSize"),
    }
    for field, names in wanted.items():
        given = section.get(field)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            yield PlatformProblem(field, f"must be a mapping with {', '.join(names)}")
            continue
        for name in names:
            if not isinstance(given.get(name), str) or not given.get(name):
                yield PlatformProblem(f"{field}.{name}", "must be given")
        path = given.get("containerMountPath")
        if isinstance(path, str) and not _ABSOLUTE.match(path):
            rule = "must be an absolute path in the container"
            yield PlatformProblem(f"{field}.containerMountPath", rule, path[:80])
