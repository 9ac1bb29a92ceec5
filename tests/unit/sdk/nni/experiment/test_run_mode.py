"""Fate of an experiment when the process that started it ends, with processes that end."""

import subprocess
import sys

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from tests.support.in_memory_manager import InMemoryManager

PROGRAM = """
import os, sys
from nni.experiment import RunMode
from nni.experiment.local_shape import running_endpoint
from nni.experiment.run_mode import apply_run_mode
remove = apply_run_mode(RunMode[sys.argv[1]], running_endpoint(), "abcd1234")
{then}
"""


def end_process(mode: str, then: str = "") -> str:
    """Run a process that sets the mode and ends; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(then=then), mode],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("mode", "stopped"), [("Background", True), ("Foreground", True), ("Detach", False)]
)
def test_mode_decides_what_the_end_of_the_process_does(
    mode: str, stopped: bool, manager: InMemoryManager
) -> None:
    experiment = manager.add_experiment("abcd1234")

    end_process(mode)

    assert (experiment.state == experiment_pb2.EXPERIMENT_STATE_STOPPED) is stopped


@pytest.mark.parametrize("then", ["remove()", "os._exit(0)"])
def test_removed_handler_stops_nothing(then: str, manager: InMemoryManager) -> None:
    experiment = manager.add_experiment("abcd1234")

    end_process("Background", then)

    assert experiment.state == experiment_pb2.EXPERIMENT_STATE_RUNNING


def test_forked_child_leaves_the_experiment_to_its_parent(manager: InMemoryManager) -> None:
    experiment = manager.add_experiment("abcd1234")

    end_process("Background", "os.fork() and (os.wait(), remove())")

    assert experiment.state == experiment_pb2.EXPERIMENT_STATE_RUNNING


def test_foreground_prints_the_log_of_the_manager(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234")
    manager.logs["", pb.LOG_SOURCE_MANAGER] = b"INFO: trial aBcDe started\n"
    wait = "import threading\n[t.join() for t in threading.enumerate() if t.name.startswith('log')]"

    assert "INFO: trial aBcDe started" in end_process("Foreground", wait)


def test_detached_experiment_has_nothing_to_remove(manager: InMemoryManager) -> None:
    experiment = manager.add_experiment("abcd1234")

    end_process("Detach", "remove()")

    assert experiment.state == experiment_pb2.EXPERIMENT_STATE_RUNNING
