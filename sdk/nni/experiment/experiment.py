"""`Experiment`: start an experiment from Python, watch it, change it, stop it."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, overload

from nni.experiment.annotated_code import converted_code
from nni.experiment.client import ManagerClient
from nni.experiment.config import ExperimentConfig
from nni.experiment.config.training_services import new_training_service
from nni.experiment.conversion import config_from_proto, config_to_proto
from nni.experiment.environment import experiment_environment
from nni.experiment.errors import (
    UnreachableError,
    WrongStateError,
)
from nni.experiment.handle import ExperimentHandle, announce
from nni.experiment.local_shape import ensure_local_shape, running_endpoint
from nni.experiment.preflight import check_port, check_start
from nni.experiment.records import experiment_metadata
from nni.experiment.rest import get_json
from nni.experiment.run_mode import RunMode, apply_run_mode
from nni_proto.experiment.v1 import experiment_service_pb2

_logger = logging.getLogger(__name__)

DEFAULT_PORT: Final = 8080


class Experiment(ExperimentHandle):
    """Handle that starts, watches, changes and stops one experiment.

    Args:
        config: a platform name such as `"local"`, several of them, or a ready configuration.
            With names, fill in `config` before starting.

    Attributes:
        config: the configuration; changes after the start have no effect, see the `update_...`
            methods.

    Examples:
        ```python
        from nni.experiment import Experiment

        experiment = Experiment("local")
        experiment.config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        experiment.config.trial_command = "python3 trial.py"
        experiment.config.trial_concurrency = 2
        experiment.config.max_trial_number = 4
        experiment.config.tuner.name = "TPE"

        experiment.start(8080)
        experiment.wait_completion()
        best = max(experiment.export_data(), key=lambda result: result.value)
        print(best.parameter["x"], best.value)
        experiment.stop()
        ```
    """

    def __init__(self, config: ExperimentConfig | str | Sequence[str] = "local") -> None:
        super().__init__()
        self.config = _configuration(config)
        self._forget_exit: Callable[[], None] = lambda: None

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
        with converted_code(self.config) as runnable_config:
            client = ManagerClient(ensure_local_shape())
            try:
                answer = client.create(
                    config_to_proto(runnable_config),
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
        announce("Creating experiment, Experiment ID: %s", self.id)
        announce("Web UI URLs: %s", " ".join(answer.urls))
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

    def stop(self) -> None:
        """Stop the experiment and release its port; does nothing if it has been stopped."""
        client = self._client
        if client is None:
            return
        announce("Stopping experiment, please wait...")
        self._forget_exit()
        try:
            client.stop(self.id)
        except UnreachableError as error:
            _logger.warning("the experiment ended with its services: %s", error)
        finally:
            self._detach()
        announce("Experiment stopped")

    def _set_run_mode(self, run_mode: RunMode) -> None:
        self._forget_exit = apply_run_mode(run_mode, self._connected().endpoint, self.id)

    # Experiments that exist

    @classmethod
    def connect(cls, port: int) -> Experiment:
        """Return a handle of the experiment that listens on a port.

        Args:
            port: of its page, on this machine.

        Returns:
            The experiment; `stop` on it ends it for all who are connected.

        Raises:
            UnreachableError: no experiment of this installation listens there.
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
        announce(
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

    @overload
    @staticmethod
    def resume(
        experiment_id: str, port: int = ..., *, wait_completion: Literal[False], debug: bool = ...
    ) -> Experiment: ...

    @overload
    @staticmethod
    def resume(
        experiment_id: str,
        port: int = ...,
        wait_completion: bool = ...,  # noqa: FBT001 - documented signature
        debug: bool = ...,  # noqa: FBT001 - documented signature
    ) -> Experiment | None: ...

    @staticmethod
    def resume(
        experiment_id: str,
        port: int = DEFAULT_PORT,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> Experiment | None:
        """Resume a stopped experiment.

        Args:
            experiment_id: the experiment.
            port: of its page; 0: none.
            wait_completion: whether to show progress until it is done, and stop it then.
            debug: log more.

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
        announce("Experiment %s resumed, Web UI URLs: %s", experiment_id, " ".join(answer.urls))
        if not wait_completion:
            return experiment
        experiment._run_to_end()  # noqa: SLF001 - an object of this class
        return None

    @overload
    @staticmethod
    def view(
        experiment_id: str, port: int = ..., *, wait_completion: Literal[False]
    ) -> Experiment: ...

    @overload
    @staticmethod
    def view(
        experiment_id: str,
        port: int = ...,
        wait_completion: bool = ...,  # noqa: FBT001 - documented signature
        non_blocking: bool | None = ...,  # noqa: FBT001 - documented signature
    ) -> Experiment | None: ...

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
        announce("Experiment %s opened, Web UI URLs: %s", experiment_id, " ".join(answer.urls))
        if non_blocking or not wait_completion:
            return experiment
        try:
            with contextlib.suppress(KeyboardInterrupt, EOFError):
                input("Press Enter or Ctrl-C to close it.\n")
        finally:
            experiment.stop()
        return None

    @staticmethod
    def load(
        path: str | Path,
        code_directory: str | Path,
        *,
        root: str | Path | None = None,
        search_space_path: str | Path | None = None,
    ) -> str:
        """Load an experiment that was saved elsewhere; it is STOPPED and keeps its id.

        Args:
            path: the archive.
            code_directory: where the code of its trials goes, or lies already.
            root: the experiment will live in `<root>/<id>`; `None`: where experiments live.
            search_space_path: file for its search space; `None`: `search_space.json` in
                ``code_directory``.

        Returns:
            Its id, for `view` and `resume`.

        Raises:
            ConfigError: the archive is damaged or no archive.
            RefusedError: other code is in the way.
            WrongStateError: an experiment of this id is here already.
        """
        from nni.experiment.transfer import load

        with ManagerClient(ensure_local_shape()) as client:
            loaded = load(
                client,
                Path(path),
                Path(code_directory),
                root=None if root is None else Path(root),
                search_space_path=None if search_space_path is None else Path(search_space_path),
            )
        return str(loaded.id)

    # All experiments

    @staticmethod
    def get_all_experiments_metadata() -> list[dict[str, Any]]:
        """Return id, name, state, port and times of every experiment, newest first.

        Returns:
            One dict per experiment: `id`, `name`, `status`, `port`, `platform`, `startTime` and
            `endTime` in ms since 1970, `logDir`, `prefixUrl`, `tag`; what is missing is `"N/A"`.
        """
        with ManagerClient(ensure_local_shape()) as client:
            found = client.experiments(include_stopped=True)
        return [experiment_metadata(message) for message in found]

    @staticmethod
    def get_experiment_metadata(experiment_id: str) -> dict[str, Any]:
        """Return id, name, state, port and times of one experiment.

        Args:
            experiment_id: the experiment.

        Returns:
            The dict of `get_all_experiments_metadata`.

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
