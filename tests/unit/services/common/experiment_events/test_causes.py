"""Causes mirror the contract."""

import dataclasses
from enum import IntEnum

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import cause_pb2
from svc_common.experiment_events import causes

ENUMS = [
    (causes.EndCause, cause_pb2.EndCause.DESCRIPTOR),
    (causes.StopCause, cause_pb2.StopCause.DESCRIPTOR),
    (causes.LossCause, cause_pb2.LossCause.DESCRIPTOR),
    (causes.WaitCause, cause_pb2.WaitCause.DESCRIPTOR),
    (causes.IgnoreCause, cause_pb2.IgnoreCause.DESCRIPTOR),
    (causes.ExperimentCause, experiment_pb2.ExperimentCause.DESCRIPTOR),
]
REASONS = [
    (causes.EndReason, cause_pb2.EndReason.DESCRIPTOR),
    (causes.StopReason, cause_pb2.StopReason.DESCRIPTOR),
    (causes.LossReason, cause_pb2.LossReason.DESCRIPTOR),
    (causes.WaitReason, cause_pb2.WaitReason.DESCRIPTOR),
    (causes.ExperimentReason, experiment_pb2.ExperimentReason.DESCRIPTOR),
    (causes.GpuUser, cause_pb2.GpuUser.DESCRIPTOR),
]


@pytest.mark.parametrize(("enum", "descriptor"), ENUMS)
def test_enum_has_the_numbers_of_the_contract(
    enum: type[IntEnum], descriptor: EnumDescriptor
) -> None:
    unspecified = next(iter(descriptor.values_by_name))
    prefix = unspecified.removesuffix("UNSPECIFIED")

    assert {prefix + member.name: member.value for member in enum} == {
        value.name: value.number for value in descriptor.values
    }


@pytest.mark.parametrize(("reason", "descriptor"), REASONS)
def test_reason_has_the_fields_of_the_contract(reason: type, descriptor: Descriptor) -> None:
    names = {field.name.removesuffix("_ms") for field in dataclasses.fields(reason)}

    assert names == set(descriptor.fields_by_name)
