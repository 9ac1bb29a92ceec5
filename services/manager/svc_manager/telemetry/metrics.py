"""Prometheus metrics of the manager: events of trials, decision latency, live objects."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from svc_common.experiment_events.causes import LossCause
from svc_common.telemetry.metrics import DURATIONS_S, Registry, Sample
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.domain import events
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import LIVE_STATES

_MS_PER_S: Final = 1000.0
_WORD_START: Final = re.compile(r"(?<!^)(?=[A-Z])")


class Instruments:
    """Prometheus metrics of the manager: counts and durations of events, gauges of its state.

    Args:
        registry: registry of the metrics.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._events = registry.counter(
            "nni_events_appended_total", "Events appended to logs of experiments", ("kind",)
        )
        self._decisions = registry.histogram(
            "nni_decision_seconds",
            "From the first input of a round until its events are appended",
        )
        self._lag = registry.histogram(
            "nni_report_lag_seconds",
            "From a report of an agent (metric or end; by its clock) until the decision on it",
        )
        self._starts = registry.histogram(
            "nni_trial_start_seconds", "From the creation of a trial until its process starts"
        )
        self._durations = registry.histogram(
            "nni_trial_duration_seconds",
            "From the start of a trial's last attempt until its end",
            DURATIONS_S,
            ("state",),
        )
        self._lost = registry.counter(
            "nni_attempts_lost_total",
            "Attempts followed by another one: their agent, command or environment failed",
            ("cause",),
        )
        self.views = registry.counter(
            "nni_views_total", "Summaries of experiments that lists requested", ("result",)
        )
        self.requests = registry.counter(
            "nni_http_requests_total", "Requests of REST", ("method", "route", "status")
        )
        self.request_seconds = registry.histogram(
            "nni_http_request_seconds", "Time until a REST response begins", labels=("route",)
        )

    def register_gauges(
        self, experiments: Callable[[], Iterable[Experiment]], agents: AgentMonitor
    ) -> None:
        """Register gauges of experiments and trials by state, and agents by pool, for scrapes.

        Args:
            experiments: returns the live experiments of this manager.
            agents: monitor of the agents.
        """
        self.registry.gauge(
            "nni_experiments",
            "Experiments that this manager owns, by state",
            lambda: _experiments(experiments()),
            ("state",),
        )
        self.registry.gauge(
            "nni_trials_live",
            "Live trials, by state",
            lambda: _live(experiments()),
            ("state",),
        )
        self.registry.gauge(
            "nni_agents",
            "Agents with a recent presence, by pool",
            lambda: _agents(agents),
            ("pool",),
        )

    def record_events(
        self, experiment: Experiment, appended: Sequence[events.Event], now_ms: int
    ) -> None:
        """Count appended events and lost attempts; observe report lag, trials' start, run time."""
        count = self._events.inc
        for event in appended:
            count(_KINDS[type(event)])
            match event:
                case events.MetricReported():
                    self._lag.observe(max(0, now_ms - event.metric.reported_at_ms) / _MS_PER_S)
                case events.TrialStarted():
                    self._started(experiment, event)
                case events.TrialEnded():
                    self._ended(experiment, event, now_ms)
                case events.TrialLost():
                    self._lost.inc(_loss_label(event))
                case _:
                    pass

    def record_decision(self, duration_s: float) -> None:
        """Observe the seconds from a round's first input until its events are appended."""
        self._decisions.observe(duration_s)

    def _started(self, experiment: Experiment, event: events.TrialStarted) -> None:
        trial = experiment.trials[event.trial_id]
        if event.attempt == 1:
            self._starts.observe(max(0, event.started_at_ms - trial.created_at_ms) / _MS_PER_S)

    def _ended(self, experiment: Experiment, event: events.TrialEnded, now_ms: int) -> None:
        trial = experiment.trials[event.trial_id]
        self._lag.observe(max(0, now_ms - event.ended_at_ms) / _MS_PER_S)
        ran_ms = event.ended_at_ms - trial.started_at_ms if trial.started_at_ms else 0
        self._durations.observe(max(0, ran_ms) / _MS_PER_S, event.state.name)


def _loss_label(lost: events.TrialLost) -> str:
    """Return the metric label of a lost attempt: `command`, `environment` or `agent`."""
    if lost.command_failed:
        return "command"
    return "environment" if lost.loss.cause is LossCause.NOT_STARTED else "agent"


_KINDS: Final[dict[type, str]] = {
    kind: _WORD_START.sub("_", kind.__name__).lower() for kind in events.Event.__args__
}


def _experiments(found: Iterable[Experiment]) -> Iterator[Sample]:
    counts: dict[str, int] = {}
    for experiment in found:
        if experiment.created:
            counts[experiment.state.name] = counts.get(experiment.state.name, 0) + 1
    for state, count in counts.items():
        yield (state,), float(count)


def _live(found: Iterable[Experiment]) -> Iterator[Sample]:
    counts = dict.fromkeys(sorted(LIVE_STATES), 0)
    for experiment in found:
        for state in counts:
            counts[state] += experiment.counts[state]
    for state, count in counts.items():
        yield (state.name,), float(count)


def _agents(agents: AgentMonitor) -> Iterator[Sample]:
    counts: dict[str, int] = {}
    for agent in agents.living():
        counts[agent.presence.pool] = counts.get(agent.presence.pool, 0) + 1
    for pool, count in counts.items():
        yield (pool,), float(count)
