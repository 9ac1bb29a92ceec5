from typing import Any

import pytest

from nni.experiment.errors import ConfigError
from nni.nas.experiment.config import (
    CgoEngineConfig,
    ExecutionEngineConfig,
    SequentialEngineConfig,
    TrainingServiceEngineConfig,
)


@pytest.mark.claim("nas", 73)
def test_unknown_engines_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="must be one of 'ts', 'cgo', 'sequential', 'service'; got 'foo'"
    ):
        ExecutionEngineConfig(name="foo")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ts", TrainingServiceEngineConfig),
        ("cgo", CgoEngineConfig),
        ("sequential", SequentialEngineConfig),
    ],
)
def test_base_class_constructs_the_engine_that_is_named(
    name: str, expected: type[ExecutionEngineConfig]
) -> None:
    for made in (
        ExecutionEngineConfig(name=name),
        ExecutionEngineConfig.of(name),
        ExecutionEngineConfig.of({"name": name}),
        ExecutionEngineConfig.of(expected(name=name)),
    ):
        assert type(made) is expected
        assert made.to_dict()["name"] == name


def test_fields_of_the_named_engine_are_taken() -> None:
    fields: dict[str, Any] = {"name": "sequential", "maxModelCount": 4}

    made: Any = ExecutionEngineConfig(**fields)

    assert made.max_model_count == 4


def test_fields_of_other_engines_are_refused() -> None:
    with pytest.raises(ConfigError, match="batch_waiting_time is no field here"):
        ExecutionEngineConfig.of({"name": "sequential", "batch_waiting_time": 3})


@pytest.mark.parametrize("value", [3, ["ts"], object()])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="execution engine must be a name or a Execution"):
        ExecutionEngineConfig.of(value)


def test_no_engine_is_no_error() -> None:
    assert ExecutionEngineConfig.of(None) is None
