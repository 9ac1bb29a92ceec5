"""Progress of a compression job: a fold of its log, and the report to the manager that is due.

The next step is a pure function of the description and the steps that have succeeded. A compressor
may die at any moment: the next one folds the same log and comes to the same report.
"""

from collections import deque

from nni.compression.job.description import JobDescription
from nni.compression.job.field_checks import JobError
from nni.compression.job.steps import Step, step_of
from svc_compressor.domain import events, reports

_SUCCEEDED = "SUCCEEDED"


class JobProgress:
    """Mutable state of one job, folded from its experiment's log, with the report that is due.

    Attributes:
        generation: number of starts of the job, resumptions included; 0 before the first one.
        wanted: whether the job runs: it was started and has not ended since.
        done: number of steps that have succeeded.

    Examples:
        >>> progress = JobProgress()
        >>> progress.feed(events.JobCreated({}))
        >>> progress.feed(events.AlgorithmRequested(1, service="compressor"))
        >>> progress.next_report()
        GaveUp(generation=1, reason='model is missing')
    """

    def __init__(self) -> None:
        self.generation = 0
        self.wanted = False
        self.done = 0
        self._job: JobDescription | None = None
        self._failure = ""
        self._announced = False
        self._requests: dict[str, tuple[int, ...]] = {}
        self._deferred: deque[int] = deque()
        self._generated: dict[int, Step] = {}
        self._running: dict[str, Step] = {}

    @property
    def job(self) -> JobDescription:
        """Description of the job; raises JobError if it is invalid or not yet known.

        Raises:
            JobError: it is invalid.
        """
        if self._job is None:
            raise JobError("job", self._failure or "is unknown before its creation")
        return self._job

    def feed(self, event: events.Event) -> None:
        """Apply the next event: creation, start, parameter request or answer, step's trial, end."""
        match event:
            case events.JobCreated():
                self._created(event)
            case events.AlgorithmRequested():
                self._requested(event)
            case events.TrialsRequested():
                self._requests[event.request_id] = event.parameter_ids
            case events.ParametersGenerated():
                self._answered(event)
            case events.TrialScheduled():
                self._scheduled(event)
            case events.TrialEnded():
                self._ended(event)
            case events.ExperimentEnded():
                self.wanted = False

    def next_report(self) -> reports.Report | None:
        """Return the due report, marking `Started` as sent; None while manager or trial has to act.

        The same report is returned until its effect is in the log, but for `Started`, which is
        returned once for each generation.
        """
        if not self.wanted:
            return None
        if self._failure:
            return reports.GaveUp(self.generation, self._failure)
        if not self._announced:
            self._announced = True
            return reports.Started(self.generation)
        if self._generated or self._running:
            return None
        return self._answer()

    def _answer(self) -> reports.StepGenerated | reports.Completed | None:
        step = step_of(self.job, self.done)
        if self._deferred:
            if step is None:
                return reports.Completed("")
            return reports.StepGenerated("", self._deferred[0], step)
        if not self._requests:
            return None
        request_id, ids = next(iter(self._requests.items()))
        if step is None:
            return reports.Completed(request_id)
        return reports.StepGenerated(request_id, ids[0], step, len(ids) - 1)

    def _created(self, event: events.JobCreated) -> None:
        try:
            self._job = JobDescription.of(event.job)
        except JobError as error:
            self._failure = str(error)

    def _requested(self, event: events.AlgorithmRequested) -> None:
        # The manager forgets requests and parameters without a trial, too.
        self._requests.clear()
        self._deferred.clear()
        self._generated.clear()
        self._announced = False
        self.generation = event.generation
        self.wanted = True
        if self._job is not None:
            self._failure = ""

    def _answered(self, event: events.ParametersGenerated) -> None:
        asked = self._requests.pop(event.request_id, ())
        self._deferred.extend(number for number in asked if number not in event.parameter_ids)
        for number in event.parameter_ids:
            if number in self._deferred:
                self._deferred.remove(number)
        if event.exhausted:
            self._deferred.clear()
        step = step_of(self.job, self.done) if self._job is not None else None
        if step is not None:
            self._generated.update(dict.fromkeys(event.parameter_ids, step))

    def _scheduled(self, event: events.TrialScheduled) -> None:
        step = self._generated.pop(event.parameter_id, None)
        if step is not None:
            self._running[event.trial_id] = step

    def _ended(self, event: events.TrialEnded) -> None:
        step = self._running.pop(event.trial_id, None)
        if step is None:
            return  # a trial that a user has added
        if event.state == _SUCCEEDED:
            self.done = step.number
        else:
            self._failure = (
                f"step {step.number} ({step.kind}) did not succeed: trial {event.trial_id} ended "
                f"as {event.state}; see its stderr, then resume the experiment"
            )
