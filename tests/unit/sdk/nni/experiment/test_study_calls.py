"""Calls about shared studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.errors import LeaseLapsedError, WrongStateError
from nni.experiment.local_shape import running_endpoint
from nni_proto.experiment.v1 import experiment_pb2, study_service_pb2
from nni_wire.values import from_value, to_value
from tests.support.in_memory_manager import InMemoryManager, in_memory_manager


@pytest.fixture
def manager(private_home: Path) -> Iterator[InMemoryManager]:
    with in_memory_manager(private_home / "nni") as made:
        made.add_experiment("study")
        yield made


@pytest.fixture
def client(manager: InMemoryManager) -> Iterator[ManagerClient]:
    with ManagerClient(running_endpoint()) as made:
        yield made


def test_an_ask_returns_trial_and_attempt(client: ManagerClient) -> None:
    answer = client.ask_trial("study", "caller-1", parameters=to_value({"x": 5}))

    assert from_value(answer.trial.parameters) == {"x": 5}
    assert answer.attempt == 1


def test_an_ask_ends_at_its_time_limit(client: ManagerClient) -> None:
    with pytest.raises(TimeoutError, match="no trial within 0 s"):
        client.ask_trial("study", "caller-1", timeout_s=0)


def test_the_request_of_a_result_is_named_after_its_attempt(client: ManagerClient) -> None:
    trial = client.ask_trial("study", "caller-1").trial
    request = study_service_pb2.TellTrialRequest(
        experiment_id="study", trial_id=trial.id, attempt=1, value=to_value(1)
    )

    client.tell_trial(request)
    client.tell_trial(request)

    assert request.request_id == f"tell-{trial.id}-1"


def test_a_lapsed_lease_is_told_from_other_refusals(
    manager: InMemoryManager, client: ManagerClient
) -> None:
    trial = client.ask_trial("study", "caller-1").trial
    manager.studies.lapse(manager.trials["study"][0])

    with pytest.raises(LeaseLapsedError):
        client.tell_trial(
            study_service_pb2.TellTrialRequest(
                experiment_id="study", trial_id=trial.id, attempt=1, value=to_value(1)
            )
        )
    manager.change_state("study", experiment_pb2.EXPERIMENT_STATE_STOPPED)
    with pytest.raises(WrongStateError) as caught:
        client.ask_trial("study", "caller-1")
    assert caught.value.facts["reason"] == "STOPPED"


def test_leases_are_renewed_by_id_and_attempt(
    manager: InMemoryManager, client: ManagerClient
) -> None:
    assert client.renew_leases("study", "caller-1", [("tr001", 2)]) == []

    (renewal,) = manager.studies.renewals
    assert [(one.trial_id, one.attempt) for one in renewal.trials] == [("tr001", 2)]
