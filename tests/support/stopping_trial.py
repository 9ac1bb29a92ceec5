"""Trial that is stopped after two reports."""

from typing import Any


class StoppingTrial:
    """Trial as `nni.hpo.TrialReporter` is, which is to stop after two reports."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def report(self, value: Any) -> None:
        """Keep an intermediate result."""
        self.reports.append(value)

    def should_stop(self) -> bool:
        """Return whether there are two reports."""
        return len(self.reports) >= 2
