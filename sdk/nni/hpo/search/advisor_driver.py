"""Driver of an advisor, which matches the advisor's jobs with requested parameter ids."""

import json
import logging
from collections import deque
from threading import RLock
from typing import Any

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType, MetricType
from nni.hpo.search.driver import (
    CallbackGuard,
    MetricCommand,
    ParameterTable,
    Provenance,
    SendMessage,
    Suggestions,
    TrialEndCommand,
    released_by,
)

_logger = logging.getLogger(__name__)


class AdvisorAlgorithmDriver:
    """Driver that runs an advisor: its jobs answer requests, its kills become stops.

    An advisor identifies its jobs by any JSON value; the first requested id belongs to the first
    job that it sends. Jobs outside a request, also of a thread of its own, are late suggestions.
    The driver hides trials that the user added by hand from the advisor, which does not have their
    parameters.

    Args:
        advisor: the advisor.
        origin: constant part of the provenance of suggestions.
        send: callback for messages.
        metric: name of the metric to extract from reports; None passes whole reports.
    """

    lookahead = False
    assesses = True

    def __init__(
        self,
        advisor: MsgDispatcherBase,
        origin: dict[str, Any],
        send: SendMessage,
        metric: str | None = None,
    ) -> None:
        self._advisor = advisor
        self._metric = metric
        self._provenance = Provenance(origin)
        self._send = send
        self._guard = CallbackGuard(send)
        self._table = ParameterTable(send)
        self._lock = RLock()
        self._open_ids: deque[int] = deque()
        self._requested: set[int] = set()
        """Ids of the latest request."""
        self._unrequested_jobs: deque[dict[str, Any]] = deque()
        self._jobs: dict[int, dict[str, Any]] = {}
        self._batch: list[tuple[int, Any, dict[str, Any]]] | None = None
        self._exhausted = False

    def initialize(self, search_space: object) -> None:
        """Set the first search space; exceptions propagate."""
        self._advisor.process_command(CommandType.Initialize, search_space)

    def update_search_space(self, search_space: object) -> None:
        """Replace the search space; exceptions are reported and skipped."""
        self._handle(CommandType.UpdateSearchSpace, search_space)

    def generate(self, parameter_ids: list[int]) -> Suggestions:
        """Hand out jobs left over or request new ones; return them, and how many come later."""
        with self._lock:
            self._batch = []
            self._exhausted = False
            self._requested = set(parameter_ids)
            self._open_ids.extend(parameter_ids)
            while self._unrequested_jobs and self._open_ids:
                self._assign(self._unrequested_jobs.popleft())
            missing = len(parameter_ids) - len(self._batch)
        try:
            if missing > 0:
                self._advisor.process_command(CommandType.RequestTrialJobs, missing)
        finally:
            with self._lock:
                answer, self._batch = self._batch or [], None
        return Suggestions(
            tuple(answer),
            deferred=0 if self._exhausted else len(set(parameter_ids).intersection(self._open_ids)),
            exhausted=self._exhausted,
            released=released_by(self._advisor),
        )

    def deliver(self, command: CommandType, data: Any) -> None:  # noqa: ANN401 - decoded JSON
        """Turn an advisor's command into a suggestion, the end of the search, or a stop."""
        if command is CommandType.NewTrialJob:
            with self._lock:
                self._assign(data)
        elif command is CommandType.NoMoreTrialJobs:
            with self._lock:
                self._exhausted = True
                # The current answer covers its own ids only.
                promised = not self._requested.issuperset(self._open_ids)
                self._open_ids.clear()
                if self._batch is None or promised:
                    self._send({"late": [], "exhausted": True})
        elif command is CommandType.KillTrialJob:
            self._send({"stop": str(data)})
        elif command is not CommandType.Initialized:
            _logger.warning("an advisor cannot send %s here; ignored", command.name)

    def _assign(self, job: dict[str, Any]) -> None:
        if not self._open_ids:
            self._unrequested_jobs.append(job)
            return
        parameter_id = self._open_ids.popleft()
        self._jobs[parameter_id] = job
        self._table.put(parameter_id, job["parameters"])
        suggestion = (parameter_id, job["parameters"], self._provenance.now())
        if self._batch is not None:
            self._batch.append(suggestion)
        else:
            self._send({"late": [suggestion]})

    def prepare(self) -> None:
        """Do nothing: advisors do not prepare proposals."""

    def metric(self, command: MetricCommand) -> None:
        """Forward a metric of an advisor's own job to it as `ReportMetricData`; else ignore it."""
        job = self._jobs.get(command.parameter_id)
        if command.customized or job is None:
            return
        self._provenance.results += command.final
        data = {
            "parameter_id": job["parameter_id"],
            "value": self._metric_value(command.value),
            "trial_job_id": command.trial_id,
            "type": MetricType.FINAL if command.final else MetricType.PERIODICAL,
            "sequence": command.sequence,
        }
        self._handle(CommandType.ReportMetricData, data)

    def _metric_value(self, value: Any) -> Any:  # noqa: ANN401 - a report of the user
        if self._metric is None:
            return value
        from nni.hpo.objectives import part_of

        return part_of(value, self._metric)

    def trial_end(self, command: TrialEndCommand) -> None:
        """Forget a trial's configuration, and forward its end to the advisor as `TrialEnd`."""
        job = self._jobs.pop(command.parameter_id, None)
        self._table.forget(command.parameter_id)
        if command.customized or job is None:
            return
        data = {
            "trial_job_id": command.trial_id,
            "event": command.event,
            "hyper_params": json.dumps({"parameter_source": "algorithm"} | job),
        }
        self._handle(CommandType.TrialEnd, data)

    def import_data(self, data: object, *, own: bool = False) -> None:
        """Forward imported samples to the advisor as `ImportData`, and count them as results."""
        del own
        self._provenance.imported(data)
        self._handle(CommandType.ImportData, data)

    def import_curves(self, curves: list[dict[str, Any]]) -> None:
        """Do nothing: only tuners learn the curves of earlier trials."""

    def import_reports(self, reports: list[list[Any]]) -> None:
        """Do nothing: reports are for assessors, and no advisor has one beside it."""

    def add_customized(self, parameter_id: int, parameters: object) -> None:
        """Forward a trial that the user added to the advisor as `AddCustomizedTrialJob`."""
        data = {
            "parameter_id": parameter_id,
            "parameters": parameters,
            "parameter_source": "customized",
        }
        self._handle(CommandType.AddCustomizedTrialJob, data)

    def record(self, parameter_id: int, parameters: object) -> None:
        """Set the logged parameters of an id, which override the algorithm's."""
        if self._table.record(parameter_id, parameters):
            return
        with self._lock:
            if parameter_id in self._open_ids:
                self._open_ids.remove(parameter_id)
            named = self._jobs.get(parameter_id, {"parameter_id": parameter_id})
            self._jobs[parameter_id] = named | {"parameters": parameters}

    def knows(self, parameter_id: int) -> bool:
        """Return whether the id belongs to a trial that has not ended."""
        return parameter_id in self._table

    def snapshot(self) -> dict[str, Any] | None:
        """Return None: advisors have no snapshots."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """Raise TypeError: advisors have no snapshots."""
        raise TypeError("an advisor has no snapshots to restore")

    def repeat(self, parameter_ids: list[int]) -> Suggestions:
        """Raise TypeError: only a restored algorithm repeats, and advisors have no snapshots."""
        raise TypeError("an advisor has no snapshots to restore")

    def _handle(self, command: CommandType, data: object) -> None:
        self._guard.call(f"handle_{command.value}", self._advisor.process_command, command, data)
