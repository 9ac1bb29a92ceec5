"""Ports of the trial API.

Imported for its types only: a trial does not pay for `typing`.
"""

from typing import Literal, Protocol

MetricType = Literal["PERIODICAL", "FINAL"]
"""An intermediate result, or the result."""


class TrialChannel(Protocol):
    """Port between a trial and the process that runs it.

    Any thread may call; a process made by ``os.fork`` may call, too, and then speaks for the same
    trial.
    """

    def parameters(self, index: int) -> object:
        """Return the trial's parameters: any JSON value.

        Args:
            index: which set of parameters; 0 unless the experiment is multi-phase. None comes
                back when there is no such set.
        """
        ...

    def report(self, kind: MetricType, value: object) -> None:
        """Deliver a metric to the process that runs the trial; return once it has it.

        Args:
            kind: what the metric is.
            value: any object that JSON can express; NaN and infinities are allowed.

        Raises:
            TypeError: JSON cannot express the value.
            ValueError: it is too long, or contains itself.
        """
        ...
