import pytest

from nni.cli.session import experiment, manager, services_wanted
from nni.experiment.errors import NotFoundError, WrongStateError
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.in_memory_manager import InMemoryManager

STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


def test_nothing_is_started_for_a_command_that_only_looks() -> None:
    assert not services_wanted()
    with pytest.raises(WrongStateError, match="the services are not up"), manager():
        pass


@pytest.mark.usefixtures("manager")
def test_services_that_are_up_are_used() -> None:
    assert services_wanted()
    with manager() as client:
        assert client.experiments() == []


@pytest.mark.parametrize(
    ("word", "expected"), [(None, "abcd1234"), ("abcd1234", "abcd1234"), ("old", "old00000")]
)
def test_stopped_experiment_counts_only_if_named(
    word: str | None, expected: str, request: pytest.FixtureRequest
) -> None:
    served: InMemoryManager = request.getfixturevalue("manager")
    served.add_experiment("abcd1234")
    served.add_experiment("old00000", state=STOPPED)

    with experiment(word) as (_, experiment_id):
        assert experiment_id == expected


def test_unknown_word_is_not_found(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("manager")

    with pytest.raises(NotFoundError, match="nope"), experiment("nope"):
        pass
