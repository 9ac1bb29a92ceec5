"""Fate of an experiment when the Python process that started it ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from nni.experiment.errors import ExperimentError
from nni.experiment.printable_text import PrintableStream

if TYPE_CHECKING:
    from nni.experiment.endpoint import Endpoint


class RunMode(Enum):
    """Fate of an experiment when the Python process that started it ends.

    Examples:
        >>> from nni.experiment import RunMode
        >>> RunMode("detach")
        <RunMode.Detach: 'detach'>
    """

    Background = "background"
    """The experiment is stopped."""
    Foreground = "foreground"
    """The experiment is stopped; until then the manager's log is printed to the console."""
    Detach = "detach"
    """The experiment goes on."""


def apply_run_mode(run_mode: RunMode, endpoint: Endpoint, experiment_id: str) -> Callable[[], None]:
    """Stop the experiment at exit unless Detach, print its log if Foreground; return the undo."""
    if run_mode is RunMode.Detach:
        return lambda: None
    if run_mode is RunMode.Foreground:
        follower = threading.Thread(
            target=_print_manager_log,
            args=(endpoint, experiment_id),
            name=f"log of experiment {experiment_id}",
            daemon=True,
        )
        follower.start()
    stop = partial(_stop_quietly, endpoint, experiment_id, os.getpid())
    atexit.register(stop)
    return partial(atexit.unregister, stop)


def _stop_quietly(endpoint: Endpoint, experiment_id: str, owner_pid: int) -> None:
    """Stop an experiment at exit; ignore errors, and do nothing in a fork of the process."""
    from nni.experiment.client import ManagerClient

    if os.getpid() != owner_pid:
        return  # a forked child ends; the experiment is its parent's
    with contextlib.suppress(ExperimentError), ManagerClient(endpoint) as client:
        client.stop(experiment_id)


def _print_manager_log(endpoint: Endpoint, experiment_id: str) -> None:
    from nni.experiment.client import ManagerClient
    from nni_proto.experiment.v1 import experiment_service_pb2

    source = experiment_service_pb2.LOG_SOURCE_MANAGER
    stream = PrintableStream()
    with contextlib.suppress(ExperimentError), ManagerClient(endpoint) as client:
        for piece in client.follow_logs(experiment_id, source, follow=True):
            sys.stdout.write(stream.add(piece))
            sys.stdout.flush()
