"""Fields that the sections of operators share: roles with their resources, and the storage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final

from svc_trial_runner.fleet.adapters.agent_image import image_problems
from svc_trial_runner.fleet.adapters.kubernetes.options import (
    KubernetesOptions,
    option_problems,
    parse_options,
    parsed_problems,
)
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import finite_number, mebibytes, whole_number

STORAGE_PATH: Final = "/mnt/nni"
"""Folder in the containers at which the storage is mounted, unless the section says another."""
STORAGE_TYPES: Final = ("nfs", "azureStorage", "pvc")
ROLE_OPTIONS: Final = ("image", "cpus", "memory", "gpus")
"""Options of `kubernetes` that the roles of operators have instead."""


@dataclass(frozen=True, slots=True)
class PodRole:
    """Role of a job's pods: name, number, command, image, CPUs, memory and GPUs."""

    field: str
    """Path within the section: `worker`, `taskRoles[0]`."""
    name: str
    count: int
    command: str
    """Line of the shell; that of the agent's role is not used: trials have their own."""
    image: str
    cpus: str
    memory: str
    gpus: int | None


def parse_role(field: str, given: Mapping[str, Any], count_field: str = "replicas") -> PodRole:
    """Parse a role; values of a wrong type are as if missing, `role_problems` reports them.

    Args:
        field: path of the role within the section.
        given: its fields.
        count_field: name of the field with the number of pods.
    """
    cpus = _amount(given.get("cpuNumber"))
    return PodRole(
        field=field,
        name=_text(given.get("name")) or field,
        count=_count(given.get(count_field)) or 1,
        command=_text(given.get("command")),
        image=_text(given.get("dockerImage")),
        cpus="" if cpus == "0" else cpus,
        memory=_memory(given.get("memorySize")),
        gpus=whole_number(given.get("gpuNumber")),
    )


def role_problems(
    field: str, given: Mapping[str, Any], count_field: str = "replicas"
) -> Iterator[PlatformProblem]:
    """Yield the problems of a role's fields; see `parse_role`."""
    count = given.get(count_field)
    if count is not None and not _count(count):
        rule = "must be a whole number of at least 1"
        yield PlatformProblem(f"{field}.{count_field}", rule, repr(count)[:80])
    size = given.get("memorySize")
    if size is not None and not _memory(size):
        rule = "must be megabytes, or a number followed by kb, mb, gb or tb, such as 8gb"
        yield PlatformProblem(f"{field}.memorySize", rule, repr(size)[:80])
    cpus, gpus = given.get("cpuNumber"), given.get("gpuNumber")
    if cpus is not None and not _amount(cpus):
        rule = "must be a number of at least 0"
        yield PlatformProblem(f"{field}.cpuNumber", rule, repr(cpus)[:80])
    if gpus is not None and whole_number(gpus) is None:
        rule = "must be a whole number of at least 0"
        yield PlatformProblem(f"{field}.gpuNumber", rule, repr(gpus)[:80])
    yield from image_problems(f"{field}.dockerImage", _text(given.get("dockerImage")))


def role_options(base: KubernetesOptions, role: PodRole) -> KubernetesOptions:
    """Return base options with the role's CPUs, memory and GPUs, and its image if it has one."""
    return replace(
        base,
        image=role.image or base.image,
        cpus=role.cpus,
        memory=role.memory,
        gpus=role.gpus,
    )


def pod_problems(options: KubernetesOptions, role: PodRole) -> list[PlatformProblem]:
    """Return problems of the options of a role's pods, under the names of the role's fields."""
    names = {
        "image": f"{role.field}.dockerImage",
        "cpus": f"{role.field}.cpuNumber",
        "memory": f"{role.field}.memorySize",
    }
    return [replace(one, field=names.get(one.field, one.field)) for one in parsed_problems(options)]


def base_options(section: Mapping[str, object]) -> KubernetesOptions:
    """Return the options that all roles of a section share, its storage among the volumes."""
    own = {name: value for name, value in section.items() if name not in ROLE_OPTIONS}
    options = parse_options(own)
    volume = storage_volume(section.get("storage"))
    return options if volume is None else replace(options, more_volumes=(volume,))


def base_problems(section: Mapping[str, object]) -> list[PlatformProblem]:
    """Return problems of the shared options and the storage of a section."""
    own = {name: value for name, value in section.items() if name not in ROLE_OPTIONS}
    return [*option_problems(own), *storage_problems(section.get("storage"))]


def storage_volume(given: object) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the volume of a storage and its mount; None: it has none that is mounted.

    Args:
        given: section `storage`: `storageType` with its fields, and optionally `mountPath`.
    """
    if not isinstance(given, Mapping):
        return None
    source = _source(given)
    if source is None:
        return None
    claimed = given.get("storageType") == "pvc"
    path = _text(given.get("mountPath")) or (_text(given.get("path")) if claimed else "")
    volume = {"name": "nni-storage", **source}
    return volume, {"name": "nni-storage", "mountPath": path or STORAGE_PATH}


def _source(given: Mapping[str, Any]) -> dict[str, Any] | None:
    match given.get("storageType"):
        case "nfs":
            return {"nfs": {"server": given.get("server"), "path": given.get("path")}}
        case "azureStorage":
            share = {"secretName": given.get("secretName"), "shareName": given.get("azureShare")}
            return {"azureFile": share} if given.get("secretName") else None
        case "pvc":
            claim = given.get("claimName")
            return {"persistentVolumeClaim": {"claimName": claim}} if claim else None
        case _:
            return None


def storage_problems(given: object) -> list[PlatformProblem]:
    """Return problems of the section `storage`."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        return [PlatformProblem("storage", "must be a mapping with storageType")]
    kind = given.get("storageType")
    if kind not in STORAGE_TYPES:
        rule = f"must be one of {', '.join(STORAGE_TYPES)}"
        return [PlatformProblem("storage.storageType", rule, repr(kind)[:80])]
    wanted: Sequence[str] = {
        "nfs": ("server", "path"),
        "azureStorage": ("azureShare", "secretName"),
        "pvc": ("path",),
    }[kind]
    remedies = {
        "secretName": "name a Secret of the namespace with azurestorageaccountname and "
        "azurestorageaccountkey; NNI does not log in to key vaults",
    }
    return [
        PlatformProblem(f"storage.{name}", f"must be given with {kind}", "", remedies.get(name, ""))
        for name in wanted
        if not _text(given.get(name))
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return whole_number(value) or 0


def _amount(value: object) -> str:
    """Return a number as a quantity of Kubernetes; empty: it is none."""
    number = finite_number(value)
    return f"{number:g}" if number is not None and number >= 0 else ""


def _memory(value: object) -> str:
    """Return a size as a quantity of Kubernetes; empty: it is none.

    A number without unit is megabytes, as in schema v1; units are powers of 1024.
    """
    size = mebibytes(value)
    return "" if size is None else f"{ceil(size)}Mi"
