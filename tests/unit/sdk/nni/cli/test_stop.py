import pytest

from nni.cli.main import DONE, FAILED, main
from nni.cli.output import Messages
from nni.cli.stop import stop_together
from nni.experiment.client import ManagerClient
from nni.experiment.errors import NotFoundError
from nni.experiment.local_shape import running_endpoint
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.in_memory_manager import InMemoryManager


def stopped(manager: InMemoryManager) -> list[str]:
    return [
        experiment.id
        for experiment in manager.known.values()
        if experiment.state == experiment_pb2.EXPERIMENT_STATE_STOPPED
    ]


def test_the_one_that_runs_is_stopped(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["stop"]) == DONE

    assert stopped(manager) == ["abcd1234"]
    assert "Stop experiment success." in capsys.readouterr().out


def test_port_chooses_the_experiment(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", port=8080)
    manager.add_experiment("bbbb0000", port=8081)

    assert main(["stop", "--port", "8081"]) == DONE

    assert stopped(manager) == ["bbbb0000"]


def test_all_are_stopped(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234")
    manager.add_experiment("bbbb0000")

    assert main(["stop", "--all"]) == DONE

    assert stopped(manager) == ["abcd1234", "bbbb0000"]


def test_all_without_services_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "--all"]) == DONE

    assert "There is no experiment running." in capsys.readouterr().err


def test_one_of_several_must_be_named(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234")
    manager.add_experiment("bbbb0000")

    assert main(["stop"]) == FAILED

    assert stopped(manager) == []


def test_experiment_that_cannot_be_stopped_keeps_no_other_from_it(
    manager: InMemoryManager,
) -> None:
    manager.add_experiment("abcd1234")

    with ManagerClient(running_endpoint()) as client, pytest.raises(NotFoundError):
        stop_together(client, ["gone0000", "abcd1234"], Messages())

    assert stopped(manager) == ["abcd1234"]
