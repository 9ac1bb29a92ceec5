from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.duration_pb2 import Duration

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.request_checks import (
    ENVIRONMENT_LIMIT,
    check_config_values,
    check_environment,
    check_storable,
    check_text,
    environment_from,
    length_ms,
)


def test_a_value_that_cannot_be_read_back_is_refused_with_its_place() -> None:
    value = to_value({"a": [1, 2**70]})
    value.map_value.entries[0].value.list_value.items[1].big_int_value = "7x"

    with pytest.raises(InvalidArgumentError, match=r"parameters must be .*a\[1\].*'7x'"):
        check_storable(value, "parameters")


def set_class_args(config: config_pb2.ExperimentConfig) -> None:
    config.assessor.class_args.blob_value.sha256 = "0" * 64


def set_options(config: config_pb2.ExperimentConfig) -> None:
    config.training_services.add().options.big_int_value = ""


def set_command(config: config_pb2.ExperimentConfig) -> None:
    config.trial_command = "python3\0"


def set_space(config: config_pb2.ExperimentConfig) -> None:
    for _ in range(2):
        config.search_space.map_value.entries.add(key="x")


def set_model_graph(config: config_pb2.ExperimentConfig) -> None:
    config.model_graph.blob_value.sha256 = "0" * 64


def set_class(config: config_pb2.ExperimentConfig) -> None:
    config.tuner.custom.class_name = "a.\0"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (set_class_args, "assessor.class_args"),
        (set_options, "training_service.options"),
        (set_command, "trial_command"),
        (set_space, "search_space"),
        (set_model_graph, "model_graph"),
        (set_class, "tuner.class_name"),
    ],
)
def test_a_configuration_with_a_part_of_no_use_is_refused(
    change: Callable[[config_pb2.ExperimentConfig], None], field: str
) -> None:
    config = config_pb2.ExperimentConfig(trial_command="true")
    config.tuner.class_args.CopyFrom(to_value({"seed": 1}))
    check_config_values(config)
    change(config)

    with pytest.raises(InvalidArgumentError) as caught:
        check_config_values(config)

    assert caught.value.field == field


def test_no_process_can_be_started_with_nul() -> None:
    check_text("python3", "interpreter")

    with pytest.raises(InvalidArgumentError, match="interpreter must not hold"):
        check_text("a\0", "interpreter")


@pytest.mark.parametrize("name", ["", "a=b", "a\0"])
def test_an_environment_has_names_that_a_process_can_have(name: str) -> None:
    check_environment({"A": "b=c"})

    with pytest.raises(InvalidArgumentError, match="environment must have names"):
        check_environment({name: "x"})


def test_the_text_of_a_refused_variable_is_not_shown() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_environment({"PASSWORD": "secret\0"})

    assert "PASSWORD" in caught.value.message
    assert "secret" not in caught.value.message


def test_what_the_wire_makes_is_always_right() -> None:
    check_storable(to_value({"a": [None, True, -(2**80), {"b": {}}]}), "data")
    check_storable(value_pb2.Value(), "data")


@pytest.mark.parametrize(
    "duration",
    [Duration(seconds=-1), Duration(seconds=2**63 - 1), Duration(nanos=-1), Duration(nanos=2**30)],
)
def test_a_length_of_time_that_is_none_is_refused(duration: Duration) -> None:
    assert length_ms(Duration(seconds=2, nanos=5_000_000), "grace") == 2_005

    with pytest.raises(InvalidArgumentError, match="grace must be 0 s to 10,000 years"):
        length_ms(duration, "grace")


def test_environment_of_too_many_variables_is_refused() -> None:
    variables = {str(number): "" for number in range(ENVIRONMENT_LIMIT)}

    assert environment_from(variables) == variables
    with pytest.raises(InvalidArgumentError, match=r"environment must have at most 10,000 var"):
        environment_from({**variables, "one more": ""})
