from enum import IntEnum

import pytest
from google.protobuf.descriptor import EnumDescriptor

from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_manager.domain.values import Metric, MetricType, Numbers, OptimizeMode, ParameterSource


@pytest.mark.parametrize(
    ("numbers", "name", "number"),
    [
        (0.5, "default", 0.5),
        (0.5, "loss", None),
        ({"loss": 2.0}, "loss", 2.0),
        ({"loss": 2.0}, "default", None),
        (None, "default", None),
    ],
)
def test_a_metric_returns_its_numbers_by_name(
    numbers: Numbers, name: str, number: float | None
) -> None:
    metric = Metric(MetricType.FINAL, 0, b"", numbers, 1)

    assert metric.number(name) == number


@pytest.mark.parametrize(
    ("kind", "contract"),
    [
        (MetricType, metric_pb2.MetricType.DESCRIPTOR),
        (OptimizeMode, metric_pb2.OptimizeMode.DESCRIPTOR),
        (ParameterSource, trial_pb2.ParameterSource.DESCRIPTOR),
    ],
)
def test_numbers_are_those_of_the_contract(kind: type[IntEnum], contract: EnumDescriptor) -> None:
    for value in kind:
        assert contract.values_by_number[value].name.endswith("_" + value.name)
    assert len(kind) == len(contract.values) - 1


def test_metric_has_its_value_in_itself_unless_it_is_large() -> None:
    assert not Metric(MetricType.FINAL, 0, b"", None, 1).large
