"""Foreground mode: log and progress on the terminal until Ctrl-C stops the experiment."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Final

from nni.cli.output import Messages
from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from nni.experiment.errors import ExperimentError
from nni.experiment.exit_signals import OnExit, signals_as_exit
from nni.experiment.progress import ProgressDisplay, ProgressMeter, display_for
from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2

_OVER: Final = (
    experiment_pb2.EXPERIMENT_STATE_STOPPED,
    experiment_pb2.EXPERIMENT_STATE_ERROR,
)
_LAST_LINES_S: Final = 2.0
"""Time-out for the last lines of the log after the end."""


def stay(client: ManagerClient, experiment_id: str, on_exit: OnExit = "stop") -> int:
    """Show log and progress until the experiment is over; return the exit code.

    Ctrl-C stops the experiment, which is a success; TERM and HUP stop it, too. With ``on_exit``
    `leave` they end only this command. An experiment that is DONE stays open, like its page; one in
    ERROR is stopped and its errors are printed.
    """
    messages = Messages()
    display = display_for(sys.stdout)
    follower = threading.Thread(
        target=_show_log, args=(client.endpoint, experiment_id, display), daemon=True, name="log"
    )
    try:
        with signals_as_exit():
            follower.start()  # only now: what it prints may be what a signal answers
            ended = _watch(client, experiment_id, display)
    except (KeyboardInterrupt, SystemExit) as interruption:
        display.close()
        if on_exit == "leave":
            messages.info(f"Experiment {experiment_id} goes on; see: nnictl stop {experiment_id}")
            raise
        messages.info("Stopping experiment, please wait...")
        ended = client.stop(experiment_id)
        messages.info(f"Experiment {experiment_id} stopped.")
        if isinstance(interruption, SystemExit):
            raise
    if ended.state == experiment_pb2.EXPERIMENT_STATE_ERROR:
        for error in ended.errors:
            messages.error(error)
        client.stop(experiment_id)
        return 1
    if follower.is_alive():  # false also where Ctrl-C came before its start
        follower.join(_LAST_LINES_S)
    return 0


def _watch(
    client: ManagerClient, experiment_id: str, display: ProgressDisplay
) -> experiment_pb2.Experiment:
    meter, announced = ProgressMeter(), False

    def refresh() -> None:
        nonlocal announced
        progress = meter.read(client.get(experiment_id).experiment, time.monotonic())
        display.show(progress)
        if progress.state == "DONE" and not announced:
            announced = True
            display.note("INFO: The experiment is done; its page stays open. Ctrl-C stops it.\n")

    try:
        refresh()
        return client.wait(experiment_id, _OVER, refresh)
    finally:
        display.close()


def _show_log(endpoint: Endpoint, experiment_id: str, display: ProgressDisplay) -> None:
    source = experiment_service_pb2.LOG_SOURCE_MANAGER
    with contextlib.suppress(ExperimentError), ManagerClient(endpoint) as client:
        for piece in client.follow_logs(experiment_id, source, follow=True):
            display.note(piece.decode("utf-8", "replace"))
