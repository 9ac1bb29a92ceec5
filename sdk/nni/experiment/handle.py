"""Handle of an existing experiment: queries and changes."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from nni.experiment.errors import WrongStateError
from nni.experiment.printable_text import printable

# gRPC, protos and pydantic are imported in the methods that need them: importing takes longer than
# many a script that only names this class.
if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.experiment.config.algorithm import AlgorithmConfig
    from nni.experiment.progress import ProgressDisplay
    from nni.experiment.records import TrialJob, TrialMetricData, TrialResult
    from nni.experiment.replay import ReplayResult
    from nni_proto.experiment.v1 import experiment_pb2

_logger = logging.getLogger(__name__)


_ALGORITHM_S: Final = 10.0
"""Time that `start` waits for the algorithm; a slow one goes on loading after that."""


def _loaded_states() -> tuple[experiment_pb2.ExperimentState.ValueType, ...]:
    """Return the states of an experiment whose algorithm is loaded, or failed to load."""
    from nni_proto.experiment.v1 import experiment_pb2

    starting = {
        experiment_pb2.EXPERIMENT_STATE_UNSPECIFIED,
        experiment_pb2.EXPERIMENT_STATE_INITIALIZED,
    }
    return tuple(
        state for state in experiment_pb2.ExperimentState.values() if state not in starting
    )


def announce(message: str, *arguments: object) -> None:
    """Log a line for the user; on the console if logging is not configured."""
    if _logger.hasHandlers():
        _logger.info(message, *arguments)
        return
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    sys.stdout.write(f"[{stamp}] {printable(message % arguments)}\n")
    sys.stdout.flush()


class ExperimentHandle:
    """Handle of an open experiment: queries and changes.

    Results can be read after the experiment was stopped, too. Every method may raise
    `UnreachableError` when the services are gone, and `WrongStateError` before the experiment is
    started; those that change it also after it was stopped.
    """

    def __init__(self, id_: str | None = None) -> None:
        self._id = id_
        self._is_open = False
        self._port: int | None = None
        self._client: ManagerClient | None = None
        self._close_client: Callable[[], object] = lambda: None

    @property
    def id(self) -> str:
        """The experiment's id; WrongStateError before it is started.

        Raises:
            WrongStateError: it has not been started.
        """
        if self._id is None:
            raise WrongStateError("the experiment has not been started; call start() or run()")
        return self._id

    @property
    def port(self) -> int | None:
        """Port of its page, `None` while it is not open."""
        return self._port

    def _attach(
        self, client: ManagerClient, experiment: experiment_pb2.Experiment, *, owned: bool = True
    ) -> None:
        """Use a client for an open experiment; one that is not owned stays open afterwards."""
        self._detach()
        if owned:
            self._hold(client)
        self._client = client
        self._is_open = True
        self._id = experiment.id
        self._port = experiment.port or None

    def _hold(self, client: ManagerClient) -> ManagerClient:
        """Use a client until `_detach`, or until this object is deleted: it has threads."""
        self._client = client
        self._close_client = finalize(self, client.close)
        return client

    def _detach(self) -> None:
        self._close_client()
        self._close_client = lambda: None
        self._client, self._port, self._is_open = None, None, False

    def _message(self) -> experiment_pb2.Experiment:
        return self._connected().get(self.id).experiment

    def _connected(self) -> ManagerClient:
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import ensure_local_shape

        if self._client is None and self._id is None:
            raise WrongStateError(
                "the experiment is not running; call start() or run(), or Experiment.connect(port)"
            )
        return self._client or self._hold(ManagerClient(ensure_local_shape()))

    # Watching

    def wait_completion(self, display: ProgressDisplay | None = None) -> bool:
        """Show progress until the experiment ends, without stopping it; return False on ERROR.

        Args:
            display: where progress goes; `None`: standard error.

        Returns:
            False if it ended as ERROR.
        """
        from nni.experiment.progress import ProgressMeter, display_for
        from nni_proto.experiment.v1 import experiment_pb2

        end_states = (
            experiment_pb2.EXPERIMENT_STATE_DONE,
            experiment_pb2.EXPERIMENT_STATE_ERROR,
            experiment_pb2.EXPERIMENT_STATE_STOPPED,
        )
        client, meter = self._connected(), ProgressMeter()
        shown = display or display_for(sys.stderr)

        def refresh() -> None:
            experiment = client.get(self.id).experiment
            shown.show(meter.read(experiment, time.monotonic()))

        try:
            refresh()
            ended = client.wait(self.id, end_states, refresh)
            shown.show(meter.read(ended, time.monotonic()))
        finally:
            shown.close()
        for error in ended.errors:
            _logger.error("%s", error)
        return bool(ended.state != experiment_pb2.EXPERIMENT_STATE_ERROR)

    def _wait_for_algorithm(self) -> None:
        """Wait until the algorithm is loaded or has failed; return in any case at a time limit."""
        give_up_at = time.monotonic() + _ALGORITHM_S

        def check_time() -> None:
            if time.monotonic() > give_up_at:
                raise TimeoutError

        with contextlib.suppress(TimeoutError):
            self._connected().wait(self.id, _loaded_states(), check_time)

    def get_status(self) -> str:
        """Return the name of the experiment's state, such as `RUNNING`.

        Returns:
            `INITIALIZED`, `RUNNING`, `NO_MORE_TRIAL`, `TUNER_NO_MORE_TRIAL`, `DONE`, `ERROR`,
            `STOPPING`, `STOPPED` or `VIEWED`.
        """
        from nni.experiment.records import state_name

        return state_name(self._message().state)

    def get_experiment_profile(self) -> dict[str, Any]:
        """Return the experiment's id, times and configuration, as REST shows them.

        Returns:
            Its id, revision, times and configuration, see `docs/rest.md`.
        """
        from nni.experiment.rest import get_json

        endpoint = self._connected().endpoint
        url = f"{endpoint.http}/api/v1/nni/experiments/{self.id}/experiment"
        profile: dict[str, Any] = get_json(url, endpoint.token)
        return profile

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        """Return the state, parameters and results of one trial by its id.

        Args:
            trial_job_id: the trial.

        Returns:
            Its state, parameters, times and result as they are now.

        Raises:
            NotFoundError: the experiment has no such trial.
        """
        from nni.experiment.records import trial_job

        return trial_job(self._connected().trial(self.id, trial_job_id))

    def list_trial_jobs(self) -> list[TrialJob]:
        """Return state, parameters and result of all trials, in order of creation.

        Returns:
            Their states, parameters, times and results as they are now.
        """
        from nni.experiment.records import trial_job
        from nni_proto.trial.v1 import trial_service_pb2

        request = trial_service_pb2.ListTrialsRequest(experiment_id=self.id)
        return [trial_job(trial) for trial in self._connected().trials(request)]

    def get_job_statistics(self) -> dict[str, int]:
        """Return the number of trials by the name of their state, zeros left out.

        Returns:
            Numbers above 0 only, e.g. `{"RUNNING": 2, "SUCCEEDED": 7}`.
        """
        from nni.experiment.records import trial_counts

        return trial_counts(self._message())

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        """Return all reported metrics by trial id; of one trial if an id is given.

        Args:
            trial_job_id: the trial; `None`: all trials.

        Returns:
            Metrics by trial id, in order of arrival; trials without a metric are left out.
        """
        from nni.experiment.records import metric_record

        metrics: dict[str, list[TrialMetricData]] = {}
        for message in self._connected().metrics(self.id, trial_job_id or ""):
            metrics.setdefault(message.trial_id, []).append(metric_record(message))
        return metrics

    @property
    def best_trial(self) -> TrialJob | None:
        """The trial with the best value of the first objective; `None` if none has a result."""
        trial_id = self._message().best_trial_id
        return self.get_trial_job(trial_id) if trial_id else None

    def export_data(self) -> list[TrialResult]:
        """Return parameters and final result of the trials that have one.

        Returns:
            One record per trial, in order of creation.
        """
        from nni.experiment.records import trial_result

        return [trial_result(message) for message in self._connected().export(self.id)]

    def replay(
        self, on_progress: Callable[[int, int], None] = lambda _done, _of: None
    ) -> ReplayResult:
        """Draw every suggestion again from the experiment's log; return the comparison.

        Works on an experiment that is over, also after `stop`; one that runs is replayed as far
        as it has come.

        Args:
            on_progress: called with the number of log entries handled and their total.

        Returns:
            Whether every suggestion was drawn again, and the differences.

        Raises:
            ServiceFailedError: the replay broke off.
        """
        from nni.experiment.replay import replay

        with self._any_client() as client:
            return replay(client, self.id, on_progress)

    def save(self, folder: str | Path = ".", *, code: bool = False, files: bool = True) -> Path:
        """Write the experiment, code only if set, to `nni_experiment_<id>.zip`; return its path.

        Works also after `stop`; see `Experiment.load`. The archive holds the configuration as it
        was given, passwords in it included, and is readable for its owner only.

        Args:
            folder: where the archive goes.
            code: the code of the trials too, without what its `.nniignore` names.
            files: logs and what trials have written too.

        Returns:
            The archive.
        """
        from nni.experiment.transfer import save

        with self._any_client() as client:
            return save(client, self.id, Path(folder), with_code=code, with_files=files).path

    @contextlib.contextmanager
    def _any_client(self) -> Iterator[ManagerClient]:
        """Yield the open client, or one for this call, which is closed then."""
        from nni.experiment.client import ManagerClient
        from nni.experiment.local_shape import ensure_local_shape

        if self._client is not None:
            yield self._client
            return
        with ManagerClient(ensure_local_shape()) as client:
            yield client

    # Changing

    def update_trial_concurrency(self, value: int) -> None:
        """Set how many trials may be live at once.

        Args:
            value: from 1 to 99999.
        """
        self._connected().update(self.id, trial_concurrency=value)
        announce("Successfully update trialConcurrency.")

    def update_max_trial_number(self, value: int) -> None:
        """Set how many trials may ever be created.

        Args:
            value: at least 1.
        """
        self._connected().update(self.id, max_trial_number=value)
        announce("Successfully update maxTrialNum.")

    def update_max_experiment_duration(self, value: float | str | timedelta) -> None:
        """Set how long the experiment may run in all.

        Args:
            value: seconds, a timedelta, or a text such as `2h`.
        """
        from nni.experiment.config.quantities import duration_seconds
        from nni.experiment.conversion import duration_message

        if isinstance(value, timedelta):
            seconds = value.total_seconds()
        else:
            seconds = duration_seconds(value) if isinstance(value, str) else float(value)
        self._connected().update(self.id, max_experiment_duration=duration_message(seconds))
        announce("Successfully update maxExecDuration.")

    def update_agent_limits(
        self,
        *,
        min_agents: int | None = None,
        max_agents: int | None = None,
        idle_time: str | timedelta | None = None,
        max_agent_time: str | timedelta | None = None,
        max_cost: float | None = None,
        cost_per_agent_hour: float | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Change limits of the agents that platforms start for the experiment.

        A limit that is not given stays. They hold for all its platforms together.

        Args:
            min_agents: agents that stay even if no trial waits.
            max_agents: most agents at once.
            idle_time: time after which an agent without trials ends, such as `10m`.
            max_agent_time: time of all agents together, from the start of the experiment.
            max_cost: most that this time may cost.
            cost_per_agent_hour: price of one agent for an hour.
            remove: names of limits that no longer hold, such as `["max_agents"]`.

        Raises:
            ConfigError: no limit is given, or one breaks its rule.
            RefusedError: the experiment has no agents of its own, or limits contradict each other.
        """
        from nni.experiment.config.agent_limits import agent_limits
        from nni.experiment.conversion import agent_limits_to_proto

        limits = agent_limits(
            {
                "min_agents": min_agents,
                "max_agents": max_agents,
                "idle_time": idle_time,
                "max_agent_time": max_agent_time,
                "max_cost": max_cost,
                "cost_per_agent_hour": cost_per_agent_hour,
                "remove": [*remove] or None,
            }
        )
        self._connected().update_agent_limits(self.id, agent_limits_to_proto(limits))
        announce("Successfully update agentLimits.")

    def update_search_space(self, value: Any) -> None:  # noqa: ANN401 - JSON, or a type
        """Replace the search space of the running experiment.

        Args:
            value: its JSON form, or a type that describes it, see `nni.hpo.search_space`.

        Raises:
            TypeError: it is a type that describes none.
            ValueError: a range in the type breaks a rule.
        """
        from nni.hpo.space.typed_space import as_json
        from nni_wire.values import to_value

        self._connected().update(self.id, search_space=to_value(as_json(value)))
        announce("Successfully update searchSpace.")

    def update_tuner(self, value: str | Mapping[str, Any] | AlgorithmConfig) -> None:
        """Hand the running experiment over to another tuner, which learns all results.

        Trials that run go on, and their results are learned when they end. The assessor stays.

        Args:
            value: name of a tuner; its section in a configuration; or a dict with `tuner`, or with
                `tuners` and `tunerPolicy`.

        Raises:
            ConfigError: there is no such tuner, an argument is wrong, it does not support the
                search space, or it optimizes in the other direction.
            WrongStateError: the experiment has ended.

        Example::

            experiment.update_tuner({"name": "TPE", "classArgs": {"optimize_mode": "minimize"}})
        """
        from nni.experiment.config.replacement_tuner import replacement_tuner
        from nni.experiment.conversion import algorithm_to_proto

        self._connected().update(self.id, tuner=algorithm_to_proto(replacement_tuner(value)))
        announce("Successfully update tuner.")

    def kill_trial_job(self, trial_job_id: str) -> None:
        """Cancel a live trial; it ends as USER_CANCELED.

        Args:
            trial_job_id: the trial.

        Raises:
            NotFoundError: the experiment has no such trial.
            WrongStateError: the trial is over.
        """
        self._connected().kill_trial(self.id, trial_job_id)

    def add_trial(self, parameters: Mapping[str, Any]) -> int:
        """Add a trial of given parameters, whose result the tuner ignores; return their id.

        Args:
            parameters: values by hyperparameter.

        Returns:
            The id of the parameters.

        Raises:
            ConfigError: they lie outside the search space of a built-in algorithm.
        """
        from nni.experiment.parameter_checks import check_parameters
        from nni_wire.values import to_value

        client = self._connected()
        config = client.get(self.id).experiment.config
        check_parameters("parameters", dict(parameters), config, "see update_search_space")
        return client.add_trial(self.id, to_value(parameters))
