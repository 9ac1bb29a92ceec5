"""`Experiment`: start an experiment from Python, watch it, change it, stop it."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, overload

from nni.experiment.environment import experiment_environment
from nni.experiment.errors import NotFoundError, UnreachableError, WrongStateError
from nni.experiment.exit_signals import (
    OnExit,
    check_on_exit,
    deferred_interrupt,
    signals_as_exit,
)
from nni.experiment.handle import ExperimentHandle, announce
from nni.experiment.run_mode import RunMode, apply_run_mode

# Imported in the methods that need them, see `nni.experiment.handle`.
if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.experiment.config import ExperimentConfig
    from nni_proto.experiment.v1 import config_pb2, experiment_service_pb2

    _Opened: TypeAlias = (
        experiment_service_pb2.ResumeExperimentResponse
        | experiment_service_pb2.ViewExperimentResponse
    )

_logger = logging.getLogger(__name__)

_PORT: Final = "port="
"""Argument that a message about a port names."""


class Experiment(ExperimentHandle):
    """Handle that starts, watches, changes and stops one experiment.

    Args:
        config: a platform name such as `"local"`, several of them, or a ready configuration.
            With names, fill in `config` before starting.
        id: of the experiment, 4 to 32 of a-z and 0-9: that of one to `resume` or `view`, or of
            a new one for `start` and `run`; `None`: one is drawn.

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

    def __init__(
        self,
        config: ExperimentConfig | str | Sequence[str] = "local",
        id: str | None = None,  # noqa: A002 - the documented name of the argument
    ) -> None:
        super().__init__(id)
        self.config = _configuration(config)
        self._forget_exit: Callable[[], None] = lambda: None

    # Starting and ending

    def start(
        self,
        port: int | None = None,
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
        run_mode: RunMode = RunMode.Background,
    ) -> None:
        """Start the services if down, create the experiment, and return while its trials run.

        Brings the services of this machine up if they are not, and waits a moment for the
        algorithm to be loaded. Call `stop` when you are done.

        Args:
            port: of the experiment's page; `None`: 8080, or the next free one; 0: none, the page of
                all experiments has it, too.
            debug: log more.
            run_mode: what happens when this process ends.

        Raises:
            ConfigError: the configuration breaks a rule; nothing was started.
            RefusedError: port, disk or folder stands against it; nothing was started.
            WrongStateError: this object has been started already, or another experiment has its id.
        """
        from nni.experiment.annotated_code import converted_code
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import ensure_local_shape
        from nni.experiment.preflight import check_start, on_free_port

        self._check_not_open()
        if debug:
            self.config.debug = True
        check_start(self.config, port or 0, _PORT)
        with converted_code(self.config) as runnable_config, deferred_interrupt():
            client = ManagerClient(ensure_local_shape())
            try:
                answer = on_free_port(
                    port,
                    lambda number: client.create(
                        self._config_message(runnable_config),
                        port=number,
                        url_prefix="",
                        environment=experiment_environment(),
                        interpreter=sys.executable,
                        experiment_id=self._id or "",
                    ),
                )
            except BaseException:
                client.close()
                raise
            self._attach(client, answer.experiment)
            self._set_run_mode(run_mode)
            announce("Creating experiment, Experiment ID: %s", self.id)
        for warning in answer.warnings:
            _logger.warning("%s", warning)
        announce("Web UI URLs: %s", " ".join(client.page_urls(answer.urls, self.id)))
        self._wait_for_algorithm()

    def _config_message(self, config: ExperimentConfig) -> config_pb2.ExperimentConfig:
        """Return the message that creates the experiment; subclasses add what has no field."""
        from nni.experiment.conversion import config_to_proto

        return config_to_proto(config)

    def run(
        self,
        port: int | None = None,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
        *,
        on_exit: OnExit = "stop",
    ) -> bool | None:
        """Start the experiment, show progress until it is done, stop it; return False on ERROR.

        Its results can be read afterwards. Ctrl-C, TERM and HUP stop it, too.

        Args:
            port: of the experiment's page, see `start`.
            wait_completion: false: return at once; the experiment is stopped when this process
                ends.
            debug: log more.
            on_exit: `stop`, or `leave` for an experiment that goes on when Ctrl-C, TERM or HUP ends
                the waiting.

        Returns:
            True if it ended as DONE or STOPPED, false if as ERROR, `None` without waiting.

        Raises:
            ConfigError: see `start`.
            RefusedError: see `start`.
        """
        check_on_exit(on_exit)
        mode = RunMode.Detach if on_exit == "leave" else RunMode.Background
        with signals_as_exit():
            with self._stopped_at_signal(on_exit):
                self.start(port, debug, mode)
            return self._run_to_end(on_exit) if wait_completion else None

    def run_or_resume(
        self,
        port: int | None = None,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> bool | None:
        """Resume the experiment if its id exists, else run it; return as `run`.

        Args:
            port: see `run`.
            wait_completion: see `run`.
            debug: see `run`.

        Returns:
            See `run`.
        """
        if self.has_checkpoint():
            return self._resume(port, wait_completion=wait_completion, debug=debug)
        return self.run(port, wait_completion, debug)

    def has_checkpoint(self) -> bool:
        """Return whether an experiment with the id of this object exists, to be resumed.

        Returns:
            False without an id, too.
        """
        if self._id is None:
            return False
        with self._any_client() as client, contextlib.suppress(NotFoundError):
            client.get(self._id)
            return True
        return False

    def _check_not_open(self) -> None:
        """Raise WrongStateError if this object has an experiment that is open."""
        if self._is_open:
            raise WrongStateError(f"the experiment has been started already, its id is {self.id}")

    @contextlib.contextmanager
    def _stopped_at_signal(self, on_exit: OnExit) -> Iterator[None]:
        """Stop the experiment, if it is open by then, when a signal ends its start.

        The end of the process would do it, too; that of a notebook may be days away.
        """
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            if on_exit == "stop":
                self.stop()
            raise

    def _run_to_end(self, on_exit: OnExit = "stop") -> bool:
        done, interrupted = False, True
        try:
            done = self.wait_completion()
            interrupted = False
        except KeyboardInterrupt:
            _logger.warning("KeyboardInterrupt detected")
        finally:
            if interrupted and on_exit == "leave":
                self._leave()
            else:
                self.stop()
        return done

    def _leave(self) -> None:
        """Detach from the experiment and cancel its stop at exit; the experiment continues."""
        self._forget_exit()
        self._detach()
        announce("Experiment %s goes on; to stop it: nnictl stop %s", self.id, self.id)

    def stop(self) -> None:
        """Stop the experiment and release its port; does nothing if it has been stopped."""
        if self._client is None or not self._is_open:
            return
        announce("Stopping experiment, please wait...")
        self._forget_exit()
        try:
            self._client.stop(self.id)
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
        """Return a handle of the experiment that listens on a port; UnreachableError if none does.

        Args:
            port: of its page, on this machine.

        Returns:
            The experiment; `stop` on it ends it for all who are connected.

        Raises:
            UnreachableError: no experiment of this installation listens there.
        """
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import running_endpoint
        from nni.experiment.rest import get_json

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
        from nni.experiment.conversion import config_from_proto

        message = client.get(experiment_id).experiment
        experiment = cls(config_from_proto(message.config))
        experiment._attach(client, message)
        return experiment

    @overload
    def resume(
        experiment_id: Experiment,  # noqa: N805 - an id where the method is called on the class
        port: int | None = ...,
        wait_completion: bool = ...,  # noqa: FBT001 - documented signature
        debug: bool = ...,  # noqa: FBT001 - documented signature
    ) -> bool | None: ...

    @overload
    def resume(  # type: ignore[misc] # called on the class, with an id
        experiment_id: str,  # noqa: N805 - an id where the method is called on the class
        port: int | None = ...,
        *,
        wait_completion: Literal[False],
        debug: bool = ...,
    ) -> Experiment: ...

    @overload
    def resume(  # type: ignore[misc] # called on the class, with an id
        experiment_id: str,  # noqa: N805 - an id where the method is called on the class
        port: int | None = ...,
        wait_completion: bool = ...,  # noqa: FBT001 - documented signature
        debug: bool = ...,  # noqa: FBT001 - documented signature
    ) -> Experiment | None: ...

    def resume(
        experiment_id: Experiment | str,  # noqa: N805 - an id where the method is called on the class
        port: int | None = None,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> Experiment | bool | None:
        """Resume a stopped experiment: `Experiment.resume("id")`, or `resume()` of an object.

        Args:
            experiment_id: the experiment; left out on an object, which has its id.
            port: of its page, see `start`.
            wait_completion: whether to show progress until it is done, and stop it then.
            debug: log more.

        Returns:
            On the class with ``wait_completion`` false the experiment, at once; else `None`, once
            it is done and stopped again. On an object the result of `run`.

        Raises:
            NotFoundError: no experiment has this id.
            WrongStateError: it is running.
        """
        if isinstance(experiment_id, Experiment):
            return experiment_id._resume(port, wait_completion=wait_completion, debug=debug)
        experiment = Experiment("local", experiment_id)
        experiment._resume(port, wait_completion=wait_completion, debug=debug)
        return None if wait_completion else experiment

    @overload
    def view(
        experiment_id: Experiment,  # noqa: N805 - an id where the method is called on the class
        port: int | None = ...,
        wait_completion: bool = ...,  # noqa: FBT001 - documented signature
        non_blocking: bool | None = ...,  # noqa: FBT001 - documented signature
    ) -> Experiment | None: ...

    @overload
    def view(  # type: ignore[misc] # called on the class, with an id
        experiment_id: str,  # noqa: N805 - an id where the method is called on the class
        port: int | None = ...,
        *,
        wait_completion: Literal[False],
    ) -> Experiment: ...

    @overload
    def view(  # type: ignore[misc] # called on the class, with an id
        experiment_id: str,  # noqa: N805 - an id where the method is called on the class
        port: int | None = ...,
        wait_completion: bool = ...,  # noqa: FBT001 - documented signature
        non_blocking: bool | None = ...,  # noqa: FBT001 - documented signature
    ) -> Experiment | None: ...

    def view(
        experiment_id: Experiment | str,  # noqa: N805 - an id where the method is called on the class
        port: int | None = None,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        non_blocking: bool | None = None,  # noqa: FBT001 - documented signature
    ) -> Experiment | None:
        """Open a stopped experiment for reading, until Enter or Ctrl-C, or return it at once.

        Args:
            experiment_id: the experiment; left out on an object, which has its id.
            port: of its page, see `start`.
            wait_completion: true: return only after Ctrl-C or Enter, and close it then.
            non_blocking: older spelling of ``wait_completion=False``.

        Returns:
            The experiment, or `None` after waiting.

        Raises:
            NotFoundError: no experiment has this id.
            WrongStateError: it is running.
        """
        experiment = (
            experiment_id
            if isinstance(experiment_id, Experiment)
            else Experiment("local", experiment_id)
        )
        experiment._view(port)  # noqa: SLF001 - an object of this class
        if non_blocking or not wait_completion:
            return experiment
        try:
            with contextlib.suppress(KeyboardInterrupt, EOFError):
                input("Press Enter or Ctrl-C to close it.\n")
        finally:
            experiment.stop()
        return None

    def _resume(self, port: int | None, *, wait_completion: bool, debug: bool) -> bool | None:
        from nni.experiment.preflight import check_code_folder
        from nni_proto.experiment.v1 import experiment_service_pb2

        def resume_on(client: ManagerClient, number: int) -> _Opened:
            check_code_folder(client.get(self.id).experiment.config)
            return client.resume(
                experiment_service_pb2.ResumeExperimentRequest(
                    experiment_id=self.id,
                    port=number,
                    environment=experiment_environment(),
                    interpreter=sys.executable,
                    debug=debug,
                )
            )

        with signals_as_exit():
            with self._stopped_at_signal("stop"):
                self._reopen(port, "resumed", resume_on)
            return self._run_to_end() if wait_completion else None

    def _view(self, port: int | None) -> None:
        self._reopen(port, "opened", lambda client, number: client.view(self.id, port=number))

    def _reopen(
        self, port: int | None, done: str, call: Callable[[ManagerClient, int], _Opened]
    ) -> None:
        """Resume or view this object's experiment and attach to it; WrongStateError if open.

        Raises:
            WrongStateError: the object has no id, or its experiment is open.
        """
        from nni.experiment.client import ManagerClient
        from nni.experiment.conversion import config_from_proto
        from nni.experiment.local_shape import ensure_local_shape
        from nni.experiment.preflight import check_port, on_free_port

        if self._id is None:
            raise WrongStateError("give the id of the experiment: Experiment(config, id='...')")
        self._check_not_open()
        check_port(port or 0, _PORT)
        with deferred_interrupt():
            client = ManagerClient(ensure_local_shape())
            try:
                answer = on_free_port(port, lambda number: call(client, number))
            except BaseException:
                client.close()
                raise
            self.config = config_from_proto(answer.experiment.config)
            self._attach(client, answer.experiment)
            self._set_run_mode(RunMode.Background)
            urls = " ".join(client.page_urls(answer.urls, self.id))
            announce("Experiment %s %s, Web UI URLs: %s", self.id, done, urls)

    @staticmethod
    def load(
        path: str | Path,
        code_directory: str | Path,
        *,
        root: str | Path | None = None,
        search_space_path: str | Path | None = None,
    ) -> str:
        """Load an experiment that was saved elsewhere, as STOPPED; return its id, which it keeps.

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
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import ensure_local_shape
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
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import ensure_local_shape
        from nni.experiment.records import experiment_metadata

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
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import ensure_local_shape
        from nni.experiment.records import experiment_metadata

        with ManagerClient(ensure_local_shape()) as client:
            return experiment_metadata(client.get(experiment_id).experiment)


def _configuration(config: ExperimentConfig | str | Sequence[str]) -> ExperimentConfig:
    from nni.experiment.config import ExperimentConfig
    from nni.experiment.config.training_services import new_training_service

    if isinstance(config, ExperimentConfig):
        return config
    if isinstance(config, str):
        return ExperimentConfig(training_service=new_training_service(config))
    return ExperimentConfig(training_service=[new_training_service(name) for name in config])
