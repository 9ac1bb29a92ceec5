"""`Experiment`: start an experiment from Python, watch it, change it, stop it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

from nni.experiment.client import ManagerClient
from nni.experiment.config import ExperimentConfig
from nni.experiment.config.training_services import new_training_service
from nni.experiment.conversion import config_from_proto, config_to_proto
from nni.experiment.endpoint import Endpoint
from nni.experiment.environment import experiment_environment
from nni.experiment.errors import (
    ExperimentError,
    UnreachableError,
    WrongStateError,
)
from nni.experiment.handle import ExperimentHandle, say
from nni.experiment.local_shape import ensure_local_shape, running_endpoint
from nni.experiment.preflight import check_port, check_start
from nni.experiment.progress import ProgressDisplay, ProgressMeter, display_for
from nni.experiment.records import experiment_metadata
from nni.experiment.rest import get_json
from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2

_logger = logging.getLogger(__name__)

DEFAULT_PORT: Final = 8080

_ALGORITHM_S: Final = 10.0
"""How long `start` waits for the algorithm to be loaded; a slow one goes on loading after that."""

_LOADED_STATES: Final = tuple(
    state
    for state in experiment_pb2.ExperimentState.values()
    if state
    not in {
        experiment_pb2.EXPERIMENT_STATE_UNSPECIFIED,
        experiment_pb2.EXPERIMENT_STATE_INITIALIZED,
    }
)

_END_STATES: Final = (
    experiment_pb2.EXPERIMENT_STATE_DONE,
    experiment_pb2.EXPERIMENT_STATE_ERROR,
    experiment_pb2.EXPERIMENT_STATE_STOPPED,
)


class RunMode(Enum):
    """What becomes of an experiment when the Python process that started it ends."""

    Background = "background"
    """It is stopped."""
    Foreground = "foreground"
    """It is stopped; until then the manager's log is printed to the console."""
    Detach = "detach"
    """It goes on."""


class Experiment(ExperimentHandle):
    """One experiment.

    Args:
        config: a platform name such as `"local"`, several of them, or a ready configuration.
            With names, fill in `config` before starting.

    Attributes:
        config: the configuration; changes after the start have no effect, see the `update_...`
            methods.
    """

    def __init__(self, config: ExperimentConfig | str | Sequence[str] = "local") -> None:
        super().__init__()
        self.config = _configuration(config)
        self._stop_at_exit: Callable[[], None] | None = None

    # Starting and ending

    def start(
        self,
        port: int = DEFAULT_PORT,
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
        run_mode: RunMode = RunMode.Background,
    ) -> None:
        """Create the experiment and return while its trials run.

        Brings the services of this machine up if they are not, and waits a moment for the
        algorithm to be loaded. Call `stop` when you are done.

        Args:
            port: of the experiment's page; 0: none.
            debug: log more.
            run_mode: what happens when this process ends.

        Raises:
            ConfigError: the configuration breaks a rule; nothing was started.
            RefusedError: port, disk or folder stands against it; nothing was started.
            WrongStateError: this object has been started already.
        """
        if self._client is not None:
            raise WrongStateError(f"the experiment has been started already, its id is {self.id}")
        if debug:
            self.config.debug = True
        check_start(self.config, port)
        client = ManagerClient(ensure_local_shape())
        try:
            answer = client.create(
                config_to_proto(self.config),
                port=port,
                url_prefix="",
                environment=experiment_environment(),
                interpreter=sys.executable,
            )
        except BaseException:
            client.close()
            raise
        for warning in answer.warnings:
            _logger.warning("%s", warning)
        self._attach(client, answer.experiment)
        self._set_run_mode(run_mode)
        say("Creating experiment, Experiment ID: %s", self.id)
        say("Web UI URLs: %s", " ".join(answer.urls))
        self._wait_for_algorithm()

    def run(
        self,
        port: int = DEFAULT_PORT,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> bool | None:
        """Start the experiment, show its progress until it is done, and stop it.

        Ctrl-C stops it too.

        Args:
            port: of the experiment's page.
            wait_completion: false: return at once; the experiment is stopped when this process
                ends.
            debug: log more.

        Returns:
            True if it ended as DONE or STOPPED, false if as ERROR, `None` without waiting.

        Raises:
            ConfigError: see `start`.
            RefusedError: see `start`.
        """
        self.start(port, debug)
        if not wait_completion:
            return None
        return self._run_to_end()

    def _run_to_end(self) -> bool:
        try:
            return self.wait_completion()
        except KeyboardInterrupt:
            _logger.warning("KeyboardInterrupt detected")
            return False
        finally:
            self.stop()

    def wait_completion(self, display: ProgressDisplay | None = None) -> bool:
        """Show progress until the experiment is done, without stopping it.

        Args:
            display: where progress goes; `None`: standard error.

        Returns:
            False if it ended as ERROR.
        """
        client, meter = self._connected(), ProgressMeter()
        shown = display or display_for(sys.stderr)

        def refresh() -> None:
            experiment = client.get(self.id).experiment
            shown.show(meter.read(experiment, time.monotonic()))

        try:
            refresh()
            ended = client.wait(self.id, _END_STATES, refresh)
            shown.show(meter.read(ended, time.monotonic()))
        finally:
            shown.close()
        for error in ended.errors:
            _logger.error("%s", error)
        return bool(ended.state != experiment_pb2.EXPERIMENT_STATE_ERROR)

    def _wait_for_algorithm(self) -> None:
        """Return when the algorithm is loaded, or is taking long."""
        give_up_at = time.monotonic() + _ALGORITHM_S

        def check_time() -> None:
            if time.monotonic() > give_up_at:
                raise TimeoutError

        with contextlib.suppress(TimeoutError):
            self._connected().wait(self.id, _LOADED_STATES, check_time)

    def stop(self) -> None:
        """Stop the experiment and release its port; does nothing if it has been stopped."""
        client = self._client
        if client is None:
            return
        say("Stopping experiment, please wait...")
        if self._stop_at_exit is not None:
            atexit.unregister(self._stop_at_exit)
        try:
            client.stop(self.id)
        finally:
            self._detach()
        say("Experiment stopped")

    def _set_run_mode(self, run_mode: RunMode) -> None:
        if run_mode is RunMode.Detach:
            return
        client = self._connected()
        self._stop_at_exit = partial(_stop_quietly, client.endpoint, self.id)
        atexit.register(self._stop_at_exit)
        if run_mode is RunMode.Foreground:
            follower = threading.Thread(
                target=_print_manager_log,
                args=(client.endpoint, self.id),
                name=f"log of experiment {self.id}",
                daemon=True,
            )
            follower.start()

    # Experiments that exist

    @classmethod
    def connect(cls, port: int) -> Experiment:
        """Return the experiment whose page is open on a port, whoever started it.

        Raises:
            UnreachableError: no experiment listens there.
        """
        endpoint = running_endpoint()
        answer = get_json(f"http://127.0.0.1:{port}/api/v1/nni/version", endpoint.token)
        experiment_id = answer.get("experimentId") if isinstance(answer, dict) else None
        if not experiment_id:
            raise UnreachableError(f"no experiment listens on port {port}")
        if answer.get("grpc", endpoint.grpc) != endpoint.grpc:
            raise UnreachableError(
                f"the experiment on port {port} belongs to another installation; set NNI_HOME"
            )
        experiment = cls._opened(ManagerClient(endpoint), str(experiment_id))
        say(
            "Connect to port %s success, experiment id is %s, status is %s.",
            port,
            experiment.id,
            experiment.get_status(),
        )
        return experiment

    @classmethod
    def _opened(cls, client: ManagerClient, experiment_id: str) -> Experiment:
        message = client.get(experiment_id).experiment
        experiment = cls(config_from_proto(message.config))
        experiment._attach(client, message)
        return experiment

    @staticmethod
    def resume(
        experiment_id: str,
        port: int = DEFAULT_PORT,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> Experiment | None:
        """Let a stopped experiment go on.

        Returns:
            With ``wait_completion`` false the experiment, at once; else `None`, once it is done
            and stopped again.

        Raises:
            NotFoundError: no experiment has this id.
            WrongStateError: it is running.
        """
        check_port(port)
        client = ManagerClient(ensure_local_shape())
        request = experiment_service_pb2.ResumeExperimentRequest(
            experiment_id=experiment_id,
            port=port,
            environment=experiment_environment(),
            interpreter=sys.executable,
            debug=debug,
        )
        answer = client.resume(request)
        experiment = Experiment._opened(client, experiment_id)
        experiment._set_run_mode(RunMode.Background)  # noqa: SLF001 - an object of this class
        say("Experiment %s resumed, Web UI URLs: %s", experiment_id, " ".join(answer.urls))
        if not wait_completion:
            return experiment
        experiment._run_to_end()  # noqa: SLF001 - an object of this class
        return None

    @staticmethod
    def view(
        experiment_id: str,
        port: int = DEFAULT_PORT,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        non_blocking: bool | None = None,  # noqa: FBT001 - documented signature
    ) -> Experiment | None:
        """Open a stopped experiment for reading only.

        Args:
            experiment_id: the experiment.
            port: of its page.
            wait_completion: true: return only after Ctrl-C or Enter, and close it then.
            non_blocking: older spelling of ``wait_completion=False``.

        Returns:
            The experiment, or `None` after waiting.

        Raises:
            NotFoundError: no experiment has this id.
            WrongStateError: it is running.
        """
        check_port(port)
        client = ManagerClient(ensure_local_shape())
        answer = client.view(experiment_id, port=port)
        experiment = Experiment._opened(client, experiment_id)
        experiment._set_run_mode(RunMode.Background)  # noqa: SLF001 - an object of this class
        say("Experiment %s opened, Web UI URLs: %s", experiment_id, " ".join(answer.urls))
        if non_blocking or not wait_completion:
            return experiment
        try:
            with contextlib.suppress(KeyboardInterrupt, EOFError):
                input("Press Enter or Ctrl-C to close it.\n")
        finally:
            experiment.stop()
        return None

    # All experiments

    @staticmethod
    def get_all_experiments_metadata() -> list[dict[str, Any]]:
        """Return id, name, state, port and times of every experiment, newest first."""
        with ManagerClient(ensure_local_shape()) as client:
            found = client.experiments(include_stopped=True)
        return [experiment_metadata(message) for message in found]

    @staticmethod
    def get_experiment_metadata(experiment_id: str) -> dict[str, Any]:
        """Return id, name, state, port and times of one experiment.

        Raises:
            NotFoundError: no experiment has this id.
        """
        with ManagerClient(ensure_local_shape()) as client:
            return experiment_metadata(client.get(experiment_id).experiment)


def _configuration(config: ExperimentConfig | str | Sequence[str]) -> ExperimentConfig:
    if isinstance(config, ExperimentConfig):
        return config
    if isinstance(config, str):
        return ExperimentConfig(training_service=new_training_service(config))
    return ExperimentConfig(training_service=[new_training_service(name) for name in config])


def _stop_quietly(endpoint: Endpoint, experiment_id: str) -> None:
    """Stop an experiment whose Python process ends without having called `stop`."""
    with contextlib.suppress(ExperimentError), ManagerClient(endpoint) as client:
        client.stop(experiment_id)


def _print_manager_log(endpoint: Endpoint, experiment_id: str) -> None:
    source = experiment_service_pb2.LOG_SOURCE_MANAGER
    with contextlib.suppress(ExperimentError), ManagerClient(endpoint) as client:
        for piece in client.follow_logs(experiment_id, source, follow=True):
            sys.stdout.write(piece.decode("utf-8", "replace"))
            sys.stdout.flush()
