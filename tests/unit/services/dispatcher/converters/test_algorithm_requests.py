"""Requests about algorithms become plain values."""

import math
from typing import Any

import pytest

from nni.hpo.objectives import DEFAULT_METRIC, Objective
from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_proto.tuning.v1 import analysis_service_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.converters.algorithm_requests import (
    plain_objective,
    plain_value,
    requested_algorithms,
    trial_outcomes,
)
from svc_dispatcher.domain.values import RequestedAlgorithm
from svc_dispatcher.ports import TrialOutcome


def test_algorithms_of_a_request_are_named_by_their_kind() -> None:
    request = pb.ValidateAlgorithmsRequest(
        tuner=config_pb2.AlgorithmConfig(name="TPE", class_args=to_value({"seed": 1})),
        assessor=config_pb2.AlgorithmConfig(
            custom=config_pb2.CustomClass(class_name="own.Assessor", code_directory="/code")
        ),
        advisor=config_pb2.AlgorithmConfig(server_address="host:1"),
        several_outcomes=True,
    )

    tuner, assessor, advisor = requested_algorithms(request)

    assert tuner == RequestedAlgorithm(
        kind="tuner",
        name="TPE",
        class_name="",
        code_directory="",
        server_address="",
        class_args={"seed": 1},
        several_outcomes=True,
        replaces_space=False,
    )
    assert (assessor.kind, assessor.class_name, assessor.code_directory) == (
        "assessor",
        "own.Assessor",
        "/code",
    )
    assert (advisor.kind, advisor.server_address, advisor.class_args) == ("advisor", "host:1", {})


def test_arguments_that_are_null_are_none() -> None:
    request = pb.ValidateAlgorithmsRequest(
        advisor=config_pb2.AlgorithmConfig(name="Hyperband", class_args=to_value(None)),
        replaces_space=True,
    )

    (advisor,) = requested_algorithms(request)

    assert (advisor.kind, advisor.class_args, advisor.replaces_space) == ("advisor", {}, True)


def test_tuner_that_is_replaced_is_known_by_its_name() -> None:
    tuner = config_pb2.AlgorithmConfig(name="TPE")
    own = config_pb2.AlgorithmConfig(custom=config_pb2.CustomClass(class_name="own.Tuner"))
    asked = [
        pb.ValidateAlgorithmsRequest(
            tuner=tuner, replaced_tuner=config_pb2.AlgorithmConfig(name="Random")
        ),
        pb.ValidateAlgorithmsRequest(tuner=tuner, replaced_tuner=own),
        pb.ValidateAlgorithmsRequest(tuner=tuner),
    ]

    found = [requested_algorithms(request)[0].replaced_tuner for request in asked]

    assert found == ["Random", "", None]


def test_arguments_that_are_no_map_are_refused() -> None:
    config = config_pb2.AlgorithmConfig(name="TPE", class_args=to_value([1]))

    with pytest.raises(InvalidArgumentError, match=r"tuner\.classArgs must be a map"):
        requested_algorithms(pb.ValidateAlgorithmsRequest(tuner=config))


def test_unreadable_value_is_refused_by_the_name_of_its_field() -> None:
    value = value_pb2.Value()
    value.big_int_value = "no number"

    with pytest.raises(InvalidArgumentError, match=r"outcomes\.metric must be a readable value"):
        plain_value(value, "outcomes.metric")


def test_outcomes_hold_plain_values_in_their_order() -> None:
    messages: list[Any] = [
        analysis_service_pb2.Outcome(
            trial_id=name, parameters=to_value({"x": x}), metric=to_value(metric)
        )
        for name, x, metric in (("b", 1, math.inf), ("a", 0.5, {"default": 2}))
    ]

    assert trial_outcomes(messages) == [
        TrialOutcome("b", {"x": 1}, math.inf),
        TrialOutcome("a", {"x": 0.5}, {"default": 2}),
    ]


@pytest.mark.parametrize(
    ("message", "objective"),
    [
        (metric_pb2.Objective(), Objective(DEFAULT_METRIC, "minimize")),
        (
            metric_pb2.Objective(metric="acc", mode=metric_pb2.OPTIMIZE_MODE_MAXIMIZE),
            Objective("acc", "maximize"),
        ),
        (
            metric_pb2.Objective(metric="loss", mode=metric_pb2.OPTIMIZE_MODE_MINIMIZE),
            Objective("loss", "minimize"),
        ),
    ],
)
def test_objective_has_a_metric_and_a_mode(
    message: metric_pb2.Objective, objective: Objective
) -> None:
    assert plain_objective(message) == objective
