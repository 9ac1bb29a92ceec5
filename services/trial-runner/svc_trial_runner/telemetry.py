"""Metrics and traces of tasks and attempts."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from svc_common.clock import Clock, SteadyClock
from svc_common.experiment_events.cause_text import loss_text
from svc_common.telemetry.metrics import DURATIONS_S, Registry
from svc_common.telemetry.trace_ids import parse_traceparent
from svc_common.telemetry.tracing import Attribute, NoOpTracer, Tracer, TrialSpan
from svc_trial_runner.domain.claims import AttemptKey, TaskDecision
from svc_trial_runner.domain.reports import (
    AttemptLost,
    AttemptReport,
    MetricReported,
    ProcessExited,
    ProcessStarted,
)
from svc_trial_runner.domain.tasks import TrialWork

_MS_PER_S: Final = 1000


class Telemetry:
    """Recorder of the agent's metrics and traces: tasks, attempts, reports.

    Args:
        clock: source of the time of tasks.
        registry: receives the metrics; None: a registry that is not served.
        tracer: receives the spans; None: nothing is traced here.
    """

    def __init__(
        self, clock: Clock, registry: Registry | None = None, tracer: Tracer | None = None
    ) -> None:
        self._clock = SteadyClock(clock)
        self._tracer = tracer
        self._taken_at: dict[AttemptKey, datetime] = {}
        self._started_at: dict[AttemptKey, datetime] = {}
        self._registry = registry = registry or Registry()
        self._tasks = registry.counter(
            "nni_tasks_pulled_total", "Tasks that came, by what was done with them", ("verdict",)
        )
        self._start_seconds = registry.histogram(
            "nni_attempt_start_seconds",
            "From taking a task until the process exists",
            labels=("warm",),
        )
        self._durations = registry.histogram(
            "nni_attempt_duration_seconds", "From start to end of a process", DURATIONS_S
        )
        self._ended = registry.counter(
            "nni_attempts_ended_total", "Attempts that are over, by cause", ("cause",)
        )
        self._metrics = registry.counter(
            "nni_trial_results_total", "Results taken over from trials", ("type",)
        )

    def register_gauges(self, held: Callable[[], int], warm: Callable[[], int]) -> None:
        """Register gauges of held attempts and warm interpreters, read at each scrape.

        Args:
            held: returns the number of attempts held.
            warm: returns the number of warm interpreters.
        """
        self._registry.gauge(
            "nni_attempts_held", "Attempts on this machine", lambda: [((), float(held()))]
        )
        self._registry.gauge(
            "nni_warm_interpreters",
            "Interpreters that wait to start trials",
            lambda: [((), float(warm()))],
        )

    def task_pulled(self, verdict: TaskDecision, work: TrialWork) -> None:
        """Count a delivered task by its decision; note when a new one was taken."""
        self._tasks.inc(verdict.name.lower())
        if verdict is TaskDecision.TAKE:
            self._taken_at[work.key] = self._clock.now()

    def traceparent(self, work: TrialWork) -> str:
        """Return the trace context of the trial's process, own or manager's; empty: unsampled."""
        parent = parse_traceparent(work.traceparent)
        if parent is None or not parent.sampled:
            return ""
        key = work.key
        path = (*_path(key), "run")
        own = (self._tracer or NoOpTracer()).traceparent(
            key.experiment_id, work.parameter_id, *path
        )
        # Without spans of the agent, the trial's own spans are children of the manager's.
        return own or work.traceparent

    def reported(self, work: TrialWork, report: AttemptReport) -> None:
        """Count a report and record the spans of an attempt's start or end."""
        match report:
            case ProcessStarted():
                self._process_started(work, warm=report.warm)
            case MetricReported(final=final):
                self._metrics.inc("final" if final else "intermediate")
            case ProcessExited():
                self._over(work, report.cause.value.replace(" ", "_"), _facts(report))
            case AttemptLost(loss):
                self._over(work, "lost", {}, loss_text(loss))
            case _:
                pass

    def forget(self, key: AttemptKey) -> None:
        """Drop the times of an attempt, which may have ended without a last report."""
        self._taken_at.pop(key, None)
        self._started_at.pop(key, None)

    def _process_started(self, work: TrialWork, *, warm: bool) -> None:
        self._started_at[work.key] = now = self._clock.now()
        taken_at = self._taken_at.get(work.key)
        if taken_at is None:
            return
        self._start_seconds.observe((now - taken_at).total_seconds(), "yes" if warm else "no")
        self._note(work, "attempt.prepare", "prepare", taken_at, now)

    def _over(
        self, work: TrialWork, cause: str, facts: dict[str, Attribute], error: str = ""
    ) -> None:
        now = self._clock.now()
        taken_at = self._taken_at.pop(work.key, now)
        started_at = self._started_at.pop(work.key, None)
        self._ended.inc(cause)
        if started_at is not None:
            self._durations.observe((now - started_at).total_seconds())
            self._note(work, "attempt.run", "run", started_at, now, facts, error)
        self._note(work, "attempt", "", taken_at, now, {"nni.cause": cause}, error)

    def _note(
        self,
        work: TrialWork,
        name: str,
        part: str,
        start: datetime,
        end: datetime,
        facts: dict[str, Attribute] | None = None,
        error: str = "",
    ) -> None:
        if self._tracer is None or not work.traceparent:
            return
        key = work.key
        path = _path(key)
        identity: dict[str, Attribute] = {
            "nni.experiment_id": key.experiment_id,
            "nni.trial_id": key.trial_id,
            "nni.attempt": key.attempt,
        }
        self._tracer.record(
            TrialSpan(
                name,
                key.experiment_id,
                work.parameter_id,
                _ms(start),
                _ms(end),
                (*path, part) if part else path,
                path if part else (),
                identity | (facts or {}),
                error,
            )
        )


def _path(key: AttemptKey) -> tuple[str, int]:
    """Return the path of an attempt's span within the trace of its trial."""
    return ("attempt", key.attempt)


def _facts(exited: ProcessExited) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {"nni.cause": exited.cause.value}
    if exited.exit_code is not None:
        facts["process.exit.code"] = exited.exit_code
    if exited.signal:
        facts["nni.signal"] = exited.signal
    return facts


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * _MS_PER_S)
