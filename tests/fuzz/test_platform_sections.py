"""Values of every kind in each field of each platform's section: taken as they are, or refused.

A refusal names the field, the rule, and the value unless it is secret. No value is converted
silently: `true` is no 1, and "3" is no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from pydantic.alias_generators import to_camel

from nni.experiment.config import ExperimentConfig
from nni.experiment.config.base import ConfigModel
from nni.experiment.config.operator_services import (
    AdlCheckpointConfig,
    AdlStorageConfig,
    FrameworkAttemptCompletionPolicy,
    FrameworkControllerRoleConfig,
    KubeflowRoleConfig,
    PodStorageConfig,
)
from nni.experiment.config.pool_file import PoolFile
from nni.experiment.config.training_services import PLATFORMS, RemoteMachineConfig
from nni.experiment.errors import ConfigError

VALUES: Final[list[Any]] = [
    *(True, False, 0, -1, 7, 1.5, 10**30, math.inf, -math.inf, math.nan),
    *("", "no such word", "3", "true", "a\0b", "0s", "2h", "8gb", "-1"),
    *([], [7], ["a"], [True], {}, {"a": 1}, {"a": "b"}),
]
CLASSES: Final[list[type[ConfigModel]]] = [
    *PLATFORMS.values(),
    *(RemoteMachineConfig, PodStorageConfig, KubeflowRoleConfig, FrameworkControllerRoleConfig),
    *(FrameworkAttemptCompletionPolicy, AdlStorageConfig, AdlCheckpointConfig, PoolFile),
]
NEEDED: Final[Mapping[type[ConfigModel], dict[str, Any]]] = {
    PodStorageConfig: {"storageType": "nfs"},
    AdlStorageConfig: {"server": "s", "path": "/p", "containerMountPath": "/c"},
    AdlCheckpointConfig: {"storageClass": "c", "storageSize": "1Gi"},
    PoolFile: {"name": "gpus"},
}
"""Other fields that a class cannot be made without."""
CONVERTED: Final = {"gpuIndices", "memorySize", "trainingService"}
"""Fields of several documented forms: GPUs as `0,1`, megabytes without a unit, a section."""
WRONG: Final[Mapping[str, list[Any]]] = {
    "port": [0, 65_536],
    "slots": [0, 2**31],
    "minAgents": [-1, 2**31],
    "maxAgents": [0, 2**31],
    "idleTime": ["0s", "-1m", "soon", 60],
    "maxAgentTime": ["0h", "5w", "10"],
    "maxCost": [0, -1, math.inf, math.nan],
    "costPerAgentHour": [0, math.inf],
    "pollIntervalSeconds": [0, -1, math.inf, math.nan],
    "graceSeconds": [0, 1.5],
    "maxTrialNumberPerGpu": [0, -1],
    "gpuIndices": [-1, [1, 1.5], "a"],
    "hostKeyPolicy": ["accept", True],
    "trialMemorySize": ["8", "0gb", 8192.5],
    "trialCpuNumber": [0, True, "-2"],
    "memorySize": [0, "8Gi", True],
    "cpuNumber": [-1, math.inf, "4"],
    "gpuNumber": [-1, 0.5],
    "numCpus": [-1, math.inf, math.nan],
    "numGpus": [-1, math.inf],
    "cpus": [-1, 0, "many"],
    "gpus": [-1, 0.5],
    "replicas": [0],
    "taskNumber": [0],
    "podCount": [0],
    "jobType": ["MPIJob"],
    "operator": ["mpi-operator"],
    "storageType": ["ceph"],
    "storageSize": ["8gb"],
    "minFailedTaskCount": [-2],
    "ttlSecondsAfterFinished": [-1],
    "imageRuntime": ["docker"],
    "schedulingStrategy": ["PACK"],
}
"""Values out of range, by field."""

QUANTITIES: Final[Mapping[type[ConfigModel], tuple[str, ...]]] = {
    PLATFORMS["kubernetes"]: ("cpus",),
    PLATFORMS["adl"]: ("trialCpuNumber", "trialMemorySize"),
}
"""Fields that are whole numbers or sizes elsewhere, and quantities of Kubernetes here."""


def is_quantity(value: object) -> bool:
    """Return whether a value in `WRONG` is a quantity of Kubernetes."""
    return not isinstance(value, bool) and value in [0, "8", 8192.5]


def fields_of(cls: type[ConfigModel]) -> Iterator[str]:
    """Yield the camelCase names of the fields of a class, but for its platform."""
    return (to_camel(name) for name in cls.model_fields if name != "platform")


def refusal_of(cls: type[ConfigModel], field: str, value: object) -> ConfigError | None:
    """Return why a value of a field is refused; None: it is taken as it is."""
    try:
        made = cls(**{**NEEDED.get(cls, {}), field: value})
    except ConfigError as error:
        return error
    assert field in CONVERTED or is_kept(value, made.to_dict().get(field)), (field, value)
    return None


def is_kept(value: object, sent: object) -> bool:
    """Return whether a section sends a value as it was given.

    Paths become absolute, numbers of Kubernetes texts, and integers floats.
    """
    if isinstance(value, bool):
        return sent is value
    if isinstance(value, str):
        return isinstance(sent, str) and sent.endswith(value)
    if isinstance(value, int | float):
        return sent in (float(value), value, str(value))
    if isinstance(value, Mapping):  # a section in a section has defaults
        return isinstance(sent, dict) and value.items() <= sent.items()
    return sent == value


def is_secret(cls: type[ConfigModel], field: str) -> bool:
    return not cls.model_fields[cls.field_of(field)].repr


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_value_of_any_kind_is_taken_as_it_is_or_refused_with_field_and_rule(
    cls: type[ConfigModel],
) -> None:
    for field in fields_of(cls):
        refused = [
            (value, error)
            for value in VALUES
            if (error := refusal_of(cls, field, value)) is not None
        ]

        assert refused, field
        for value, error in refused:
            for problem in error.problems:
                assert problem.field.startswith(field), error
                assert problem.rule, error
                assert not (is_secret(cls, field) and problem.value), error
                simple = not isinstance(value, list | dict)
                assert not simple or is_secret(cls, field) or repr(value) in str(error), error


@pytest.mark.parametrize(
    ("cls", "field", "value"),
    [
        pytest.param(cls, field, value, id=f"{cls.__name__}-{field}-{value!r}")
        for cls in CLASSES
        for field in fields_of(cls)
        for value in WRONG.get(field, [])
        if not (field in QUANTITIES.get(cls, ()) and is_quantity(value))
    ],
)
def test_value_out_of_range_is_refused_with_field_and_value(
    cls: type[ConfigModel], field: str, value: object
) -> None:
    error = refusal_of(cls, field, value)

    assert error is not None
    assert error.problems[0].field.startswith(field)
    assert "must" in error.problems[0].rule


@pytest.mark.parametrize("value", ["http://10.0.0.7", "10.0.0.7:8081", "", "a b", "-a", 7])
def test_address_of_the_manager_is_a_host_without_a_port(value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig(nni_manager_ip=value)

    (problem,) = caught.value.problems
    assert (problem.field, problem.value) == ("nniManagerIp", value)


@pytest.mark.parametrize("value", ["10.0.0.7", "fe80::1", "head.example.org", "localhost"])
def test_address_of_the_manager_may_be_a_name(value: str) -> None:
    assert ExperimentConfig(nni_manager_ip=value).nni_manager_ip == value
