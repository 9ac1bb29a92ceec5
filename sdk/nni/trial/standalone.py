"""Trial channel of a script that runs without an experiment."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nni.trial.ports import MetricType

_LABELS = {"PERIODICAL": "Intermediate result", "FINAL": "Final result"}


class StandaloneTrialChannel:
    """Trial channel without an experiment: empty parameters, metrics to standard output."""

    def parameters(self, index: int) -> object:
        """Return an empty dict, which the defaults of the trial fill."""
        del index
        return {}

    def report(self, kind: "MetricType", value: object) -> None:
        """Print a metric with a time stamp to standard output."""
        from time import strftime

        sys.stdout.write(f"[{strftime('%Y-%m-%d %H:%M:%S')}] INFO (nni) {_LABELS[kind]}: {value}\n")
        sys.stdout.flush()
