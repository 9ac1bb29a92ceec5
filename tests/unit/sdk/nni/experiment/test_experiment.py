"""Start and end of experiments from Python, against a manager in this process."""

import builtins
import logging
import os
import signal

import pytest

from nni.experiment import Experiment, ExperimentConfig, RunMode
from nni.experiment.errors import (
    ConfigError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    WrongStateError,
)
from nni.experiment.exit_signals import OnExit
from nni.experiment.preflight import DEFAULT_PORT
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.experiment_configs import complete
from tests.support.hang_up import hang_up_is_not_ignored
from tests.support.in_memory_manager import InMemoryManager
from tests.support.ports import free_port

__all__ = ["hang_up_is_not_ignored"]  # a fixture

RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
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


def test_experiment_gets_the_id_that_was_given(manager: InMemoryManager) -> None:
    experiment = Experiment(complete(), id="mine0001")

    experiment.start(0, run_mode=RunMode.Detach)

    assert manager.created[0].experiment_id == "mine0001"
    assert experiment.id == "mine0001"


def test_experiment_without_a_port_takes_a_free_one(manager: InMemoryManager) -> None:
    Experiment(complete()).start(run_mode=RunMode.Detach)

    port = manager.created[0].port
    assert port == 0 or DEFAULT_PORT <= port < DEFAULT_PORT + 100


def test_experiment_with_port_zero_says_where_its_page_is(
    manager: InMemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    experiment = Experiment(complete())

    with caplog.at_level(logging.INFO):
        experiment.start(0, run_mode=RunMode.Detach)

    assert f"{manager.http}/?id={experiment.id}" in caplog.text


def test_results_can_be_read_after_the_run(manager: InMemoryManager) -> None:
    manager.on_wait = lambda: manager.change_state("new00001", DONE)
    experiment = Experiment(complete())

    experiment.run(0)

    manager.add_trial("new00001", "done0", result=0.75)
    manager.known["new00001"].best_trial_id = "done0"
    assert [result.value for result in experiment.export_data()] == [0.75]
    assert experiment.best_trial == experiment.get_trial_job("done0")
    assert experiment.get_status() == "STOPPED"
    assert experiment.get_job_statistics() == {}


def test_experiment_without_a_result_has_no_best_trial(manager: InMemoryManager) -> None:
    experiment = started(manager)

    assert experiment.best_trial is None


def test_object_with_an_id_resumes_and_runs_on(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED)
    experiment = Experiment("local", id="abcd1234")
    manager.on_wait = lambda: manager.change_state("abcd1234", DONE)

    assert experiment.has_checkpoint()
    assert experiment.resume(0) is True
    assert experiment.get_status() == "STOPPED"


def test_object_without_an_id_cannot_be_resumed(manager: InMemoryManager) -> None:
    experiment = Experiment("local")

    assert not experiment.has_checkpoint()
    with pytest.raises(WrongStateError, match="give the id of the experiment"):
        experiment.resume(0)


def test_object_with_an_id_opens_its_experiment_for_reading(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED)

    viewed = Experiment("local", id="abcd1234").view(0, non_blocking=True)

    assert viewed is not None
    assert viewed.get_status() == "VIEWED"
    viewed.stop()


def test_run_or_resume_does_what_the_id_asks_for(manager: InMemoryManager) -> None:
    first = Experiment(complete(), id="mine0001")
    first.run_or_resume(0, wait_completion=False)
    first.stop()

    Experiment("local", id="mine0001").run_or_resume(0, wait_completion=False)

    assert len(manager.created) == 1
    assert manager.known["mine0001"].state == experiment_pb2.EXPERIMENT_STATE_RUNNING


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("on_exit", "state"), [("stop", STOPPED), ("leave", RUNNING)])
def test_signal_in_run_stops_the_experiment_or_leaves_it(
    number: signal.Signals,
    on_exit: OnExit,
    state: experiment_pb2.ExperimentState.ValueType,
    manager: InMemoryManager,
) -> None:
    waits = iter(range(9))

    def end_second_wait() -> None:  # the first one, of the start, is for the algorithm
        if next(waits) == 1:
            os.kill(os.getpid(), number)

    manager.on_wait = end_second_wait

    with pytest.raises(SystemExit) as ended:
        Experiment(complete()).run(0, on_exit=on_exit)

    assert ended.value.code == 128 + number
    assert manager.known["new00001"].state == state


@pytest.mark.parametrize(("on_exit", "state"), [("stop", STOPPED), ("leave", RUNNING)])
def test_interrupt_while_the_algorithm_loads_stops_the_experiment_or_leaves_it(
    on_exit: OnExit,
    state: experiment_pb2.ExperimentState.ValueType,
    manager: InMemoryManager,
) -> None:
    def interrupt_first_wait() -> None:
        manager.on_wait = lambda: None
        os.kill(os.getpid(), signal.SIGINT)

    manager.on_wait = interrupt_first_wait

    with pytest.raises(KeyboardInterrupt):
        Experiment(complete()).run(0, on_exit=on_exit)

    assert manager.known["new00001"].state == state


def test_unknown_fate_at_a_signal_is_refused(manager: InMemoryManager) -> None:
    with pytest.raises(ValueError, match="on_exit must be 'stop' or 'leave', got 'go'"):
        Experiment(complete()).run(0, on_exit="go")  # type: ignore[arg-type] # as a user may

    assert not manager.created


def test_taken_port_is_refused_in_terms_of_python(manager: InMemoryManager) -> None:
    port = int(manager.http.rpartition(":")[2])

    with pytest.raises(RefusedError, match="choose another one with port="):
        Experiment(complete()).start(port)


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
