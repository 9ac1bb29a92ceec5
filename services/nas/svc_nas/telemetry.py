"""Metrics of explorations."""

from svc_common.telemetry.metrics import Registry
from svc_nas.domain.reports import CandidatesGenerated, GaveUp, Report


class Telemetry:
    """Recorder of the service's metrics: candidates, processes, explorations that cannot continue.

    Args:
        registry: receives the metrics; None: a registry that is not served.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        registry = registry or Registry()
        self._candidates = registry.counter(
            "nni_nas_candidates_total", "Candidates given to the manager"
        )
        self._processes = registry.counter(
            "nni_nas_strategy_processes_total", "Processes of strategies that were started"
        )
        self._crashes = registry.counter(
            "nni_nas_strategy_crashes_total", "Processes of strategies that ended by an error"
        )
        self._failed = registry.counter(
            "nni_nas_failures_total", "Explorations that were given up, resumptions counted anew"
        )

    def process_started(self) -> None:
        """Count a process."""
        self._processes.inc()

    def process_ended(self, *, clean: bool) -> None:
        """Count the end of a process if it was an error."""
        if not clean:
            self._crashes.inc()

    def report_sent(self, report: Report) -> None:
        """Count the candidates in a sent report, or a failed exploration; ignore other reports."""
        if isinstance(report, GaveUp):
            self._failed.inc()
        elif isinstance(report, CandidatesGenerated):
            for _ in report.candidates:
                self._candidates.inc()
