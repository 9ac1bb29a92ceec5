"""Hosts an advisor: matches the jobs it sends with the requests it was sent."""

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


class AdvisorDriver:
    """Calls the handlers of an advisor and gives its jobs the ids that were asked for.

    An advisor names its jobs itself, by any JSON value; the first id asked for goes to the first
    job sent. What it sends outside a request, also from a thread of its own, starts later trials.
    It is not told of metrics and ends of trials that the user added by hand, since it knows no
    parameters of theirs.

    Args:
        advisor: what is hosted.
        origin: what is the same in the provenance of every suggestion.
        send: where answers go.
        metric: the one part of reports that the advisor sees; None: reports as they are.
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
        self._known = ParameterTable(send)
        self._lock = RLock()
        self._wanted: deque[int] = deque()
        self._asked: set[int] = set()
        """Ids of the latest request."""
        self._surplus: deque[dict[str, Any]] = deque()
        self._jobs: dict[int, dict[str, Any]] = {}
        self._batch: list[tuple[int, Any, dict[str, Any]]] | None = None
        self._exhausted = False

    def initialize(self, search_space: object) -> None:
        """See `AlgorithmDriver`."""
        self._advisor.process_command(CommandType.Initialize, search_space)

    def update_search_space(self, search_space: object) -> None:
        """See `AlgorithmDriver`."""
        self._exhausted = False
        self._handle(CommandType.UpdateSearchSpace, search_space)

    def generate(self, parameter_ids: list[int]) -> Suggestions:
        """See `AlgorithmDriver`."""
        with self._lock:
            self._batch = []
            self._exhausted = False
            self._asked = set(parameter_ids)
            self._wanted.extend(parameter_ids)
            while self._surplus and self._wanted:
                self._serve(self._surplus.popleft())
            missing = len(parameter_ids) - len(self._batch)
        try:
            if missing > 0:
                self._advisor.process_command(CommandType.RequestTrialJobs, missing)
        finally:
            with self._lock:
                answer, self._batch = self._batch or [], None
        return Suggestions(
            tuple(answer),
            deferred=0 if self._exhausted else len(set(parameter_ids).intersection(self._wanted)),
            exhausted=self._exhausted,
            released=released_by(self._advisor),
        )

    def deliver(self, command: CommandType, data: Any) -> None:  # noqa: ANN401 - decoded JSON
        """Take what the advisor sends; see `nni.hpo.commands.CommandPort`."""
        if command is CommandType.NewTrialJob:
            with self._lock:
                self._serve(data)
        elif command is CommandType.NoMoreTrialJobs:
            with self._lock:
                self._exhausted = True
                # The answer in hand tells of its own ids only.
                promised = not self._asked.issuperset(self._wanted)
                self._wanted.clear()
                if self._batch is None or promised:
                    self._send({"late": [], "exhausted": True})
        elif command is CommandType.KillTrialJob:
            self._send({"stop": str(data)})
        elif command is not CommandType.Initialized:
            _logger.warning("an advisor cannot send %s here; ignored", command.name)

    def _serve(self, job: dict[str, Any]) -> None:
        if not self._wanted:
            self._surplus.append(job)
            return
        parameter_id = self._wanted.popleft()
        self._jobs[parameter_id] = job
        self._known.put(parameter_id, job["parameters"])
        suggestion = (parameter_id, job["parameters"], self._provenance.now())
        if self._batch is not None:
            self._batch.append(suggestion)
        else:
            self._send({"late": [suggestion]})

    def prepare(self) -> None:
        """See `AlgorithmDriver`; advisors have nothing to prepare."""

    def metric(self, command: MetricCommand) -> None:
        """See `AlgorithmDriver`."""
        job = self._jobs.get(command.parameter_id)
        if command.customized or job is None:
            return
        self._provenance.results += command.final
        data = {
            "parameter_id": job["parameter_id"],
            "value": self._seen(command.value),
            "trial_job_id": command.trial_id,
            "type": MetricType.FINAL if command.final else MetricType.PERIODICAL,
            "sequence": command.sequence,
        }
        self._handle(CommandType.ReportMetricData, data)

    def _seen(self, value: Any) -> Any:  # noqa: ANN401 - what a trial reported
        if self._metric is None:
            return value
        from nni.hpo.objectives import part_of

        return part_of(value, self._metric)

    def trial_end(self, command: TrialEndCommand) -> None:
        """See `AlgorithmDriver`."""
        job = self._jobs.pop(command.parameter_id, None)
        self._known.forget(command.parameter_id)
        if command.customized or job is None:
            return
        data = {
            "trial_job_id": command.trial_id,
            "event": command.event,
            "hyper_params": json.dumps({"parameter_source": "algorithm"} | job),
        }
        self._handle(CommandType.TrialEnd, data)

    def import_data(self, data: object, *, own: bool = False) -> None:
        """See `AlgorithmDriver`."""
        del own
        self._provenance.imported(data)
        self._handle(CommandType.ImportData, data)

    def add_customized(self, parameter_id: int, parameters: object) -> None:
        """See `AlgorithmDriver`."""
        data = {
            "parameter_id": parameter_id,
            "parameters": parameters,
            "parameter_source": "customized",
        }
        self._handle(CommandType.AddCustomizedTrialJob, data)

    def record(self, parameter_id: int, parameters: object) -> None:
        """See `AlgorithmDriver`."""
        if self._known.record(parameter_id, parameters):
            return
        with self._lock:
            if parameter_id in self._wanted:
                self._wanted.remove(parameter_id)
            named = self._jobs.get(parameter_id, {"parameter_id": parameter_id})
            self._jobs[parameter_id] = named | {"parameters": parameters}

    def knows(self, parameter_id: int) -> bool:
        """See `AlgorithmDriver`."""
        return parameter_id in self._known

    def snapshot(self) -> dict[str, Any] | None:
        """See `AlgorithmDriver`; advisors cannot tell."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """See `AlgorithmDriver`; never called, since there are no snapshots."""
        raise TypeError("an advisor has no snapshots to go on from")

    def repeat(self, parameter_ids: list[int]) -> Suggestions:
        """See `AlgorithmDriver`; never called, since there are no snapshots."""
        raise TypeError("an advisor has no snapshots to go on from")

    def _handle(self, command: CommandType, data: object) -> None:
        self._guard.call(f"handle_{command.value}", self._advisor.process_command, command, data)
