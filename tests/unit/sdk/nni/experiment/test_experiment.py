"""Start and end of experiments from Python, against a manager in this process."""

import builtins

import pytest

from nni.experiment import Experiment, ExperimentConfig, RunMode
from nni.experiment.errors import (
    ConfigError,
    NotFoundError,
    UnreachableError,
    WrongStateError,
)
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.experiment_configs import complete
from tests.support.in_memory_manager import InMemoryManager
from tests.support.ports import free_port

STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED
DONE = experiment_pb2.EXPERIMENT_STATE_DONE


def started(manager: InMemoryManager) -> Experiment:
    experiment = Experiment(complete())
    experiment.start(free_port(), run_mode=RunMode.Detach)
    return experiment


def test_names_of_platforms_make_a_configuration() -> None:
    several = Experiment(["local", "remote"]).config.training_services()

    assert [service.platform for service in several] == ["local", "remote"]
    assert Experiment("local").config == ExperimentConfig(training_service={"platform": "local"})
    with pytest.raises(ConfigError, match="did you mean local"):
        Experiment("locl")


def test_start_creates_the_experiment_and_stop_ends_it(manager: InMemoryManager) -> None:
    experiment = started(manager)

    assert experiment.id == "new00001"
    assert experiment.get_status() == "RUNNING"
    assert manager.created[0].config.trial_command == "python3 trial.py"
    experiment.stop()
    experiment.stop()
    assert manager.known["new00001"].state == STOPPED


def test_second_start_is_refused(manager: InMemoryManager) -> None:
    experiment = started(manager)

    with pytest.raises(WrongStateError, match="its id is new00001"):
        experiment.start(free_port())


def test_incomplete_configuration_is_refused_before_a_call(manager: InMemoryManager) -> None:
    with pytest.raises(ConfigError, match="trialCommand"):
        Experiment("local").start(free_port())

    assert manager.created == []


def test_run_shows_progress_and_stops_at_the_end(manager: InMemoryManager) -> None:
    manager.on_wait = lambda: manager.change_state("new00001", DONE)

    assert Experiment(complete()).run(free_port()) is True

    assert manager.known["new00001"].state == STOPPED


def test_run_without_waiting_returns_at_once(manager: InMemoryManager) -> None:
    experiment = Experiment(complete())

    assert experiment.run(free_port(), wait_completion=False, debug=True) is None

    assert manager.known["new00001"].state == experiment_pb2.EXPERIMENT_STATE_RUNNING
    assert manager.created[0].config.debug
    experiment.stop()


def test_connect_finds_the_experiment_of_a_port(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234")
    port = int(manager.http.rpartition(":")[2])
    version = {"experimentId": "abcd1234", "grpc": manager.grpc}
    manager.documents["/api/v1/nni/version"] = version

    assert Experiment.connect(port).id == "abcd1234"
    manager.documents["/api/v1/nni/version"] = {**version, "grpc": "127.0.0.1:1"}
    with pytest.raises(UnreachableError, match="another installation"):
        Experiment.connect(port)
    manager.documents["/api/v1/nni/version"] = {}
    with pytest.raises(UnreachableError, match="no experiment listens"):
        Experiment.connect(port)


def test_connect_without_services_is_an_error() -> None:
    with pytest.raises(UnreachableError, match="no services are up"):
        Experiment.connect(8080)


def test_resume_goes_on_and_refuses_what_runs(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED)

    resumed = Experiment.resume("abcd1234", free_port(), wait_completion=False)

    assert resumed.get_status() == "RUNNING"
    with pytest.raises(WrongStateError, match="is running"):
        Experiment.resume("abcd1234", free_port())
    with pytest.raises(NotFoundError, match="nope0000"):
        Experiment.resume("nope0000", free_port())
    resumed.stop()


@pytest.mark.parametrize("ending", [EOFError, KeyboardInterrupt])
def test_view_waits_for_the_user_and_closes(
    ending: type[BaseException], manager: InMemoryManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.add_experiment("abcd1234", state=STOPPED)
    seen: list[int] = []

    def answer(_prompt: str) -> str:
        seen.append(manager.known["abcd1234"].state)
        raise ending

    monkeypatch.setattr(builtins, "input", answer)

    assert Experiment.view("abcd1234", free_port()) is None

    assert seen == [experiment_pb2.EXPERIMENT_STATE_VIEWED]
    assert manager.known["abcd1234"].state == STOPPED


def test_view_without_waiting_returns_the_experiment(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED)

    viewed = Experiment.view("abcd1234", free_port(), non_blocking=True)

    assert viewed is not None
    assert viewed.get_status() == "VIEWED"
    viewed.stop()


def test_metadata_has_stopped_experiments_too(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED, port=0)
    manager.add_experiment("bbbb0000")

    found = Experiment.get_all_experiments_metadata()

    assert [(one["id"], one["status"]) for one in found] == [
        ("bbbb0000", "RUNNING"),
        ("abcd1234", "STOPPED"),
    ]
    assert Experiment.get_experiment_metadata("abcd1234") == found[1]
