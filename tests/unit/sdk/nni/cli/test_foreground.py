import os
import signal
import threading
from collections.abc import Iterator

import pytest

from nni.cli.foreground import stay
from nni.cli.main import DONE, FAILED
from nni.experiment.client import ManagerClient
from nni.experiment.exit_signals import OnExit
from nni.experiment.local_shape import running_endpoint
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from tests.support.hang_up import hang_up_is_not_ignored
from tests.support.in_memory_manager import InMemoryManager

__all__ = ["hang_up_is_not_ignored"]  # a fixture


@pytest.fixture
def client(manager: InMemoryManager) -> Iterator[ManagerClient]:
    manager.add_experiment("abcd1234")
    with ManagerClient(running_endpoint()) as opened:
        yield opened


def test_experiment_in_error_is_stopped_and_fails(
    client: ManagerClient, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.known["abcd1234"].errors.append("the tuner failed")
    manager.change_state("abcd1234", experiment_pb2.EXPERIMENT_STATE_ERROR)

    assert stay(client, "abcd1234") == FAILED

    assert "ERROR: the tuner failed" in capsys.readouterr().err
    assert manager.known["abcd1234"].state == experiment_pb2.EXPERIMENT_STATE_STOPPED


def test_experiment_that_was_stopped_elsewhere_ends_it(
    client: ManagerClient, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.logs["", pb.LOG_SOURCE_MANAGER] = b"INFO: trial aBcDe started\n"
    manager.change_state("abcd1234", experiment_pb2.EXPERIMENT_STATE_STOPPED)

    assert stay(client, "abcd1234") == DONE

    assert "INFO: trial aBcDe started" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("on_exit", "state"),
    [
        ("stop", experiment_pb2.EXPERIMENT_STATE_STOPPED),
        ("leave", experiment_pb2.EXPERIMENT_STATE_RUNNING),
    ],
)
def test_signal_stops_the_experiment_or_leaves_it(
    number: signal.Signals,
    on_exit: OnExit,
    state: experiment_pb2.ExperimentState.ValueType,
    client: ManagerClient,
    manager: InMemoryManager,
) -> None:
    waits = threading.Event()
    manager.on_wait = waits.set
    before = signal.getsignal(number)

    def terminate() -> None:
        waits.wait()
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=terminate)
    thread.start()
    with pytest.raises(SystemExit) as ended:
        stay(client, "abcd1234", on_exit)
    thread.join()

    assert ended.value.code == 128 + number
    assert manager.known["abcd1234"].state == state
    assert signal.getsignal(number) is before
