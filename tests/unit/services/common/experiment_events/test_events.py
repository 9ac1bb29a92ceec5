"""Shared events mirror the contract and have one home."""

import dataclasses

import pytest

from nni_proto.experiment.v1 import event_pb2
from svc_common.experiment_events import events as shared
from svc_dispatcher.domain import events as of_dispatcher
from svc_manager.domain import events as of_manager

SHARED = [shared.TrialsRequested, shared.ExperimentMoved]


@pytest.mark.parametrize("event", SHARED)
def test_fields_are_those_of_the_contract(event: type) -> None:
    message = event_pb2.DESCRIPTOR.message_types_by_name[event.__name__]

    names = {field.name for field in dataclasses.fields(event)}

    deprecated = {field.name for field in message.fields if field.GetOptions().deprecated}
    assert names == set(message.fields_by_name) - deprecated


def test_request_of_a_job_is_that_of_the_other_services_without_a_tuner() -> None:
    of_job = {field.name for field in dataclasses.fields(shared.AlgorithmRequested)}

    for event in (of_manager.AlgorithmRequested, of_dispatcher.AlgorithmRequested):
        assert {field.name for field in dataclasses.fields(event)} == of_job | {"tuner"}


@pytest.mark.parametrize("event", SHARED)
def test_both_services_have_the_same_class(event: type) -> None:
    assert getattr(of_manager, event.__name__) is event
    assert getattr(of_dispatcher, event.__name__) is event
