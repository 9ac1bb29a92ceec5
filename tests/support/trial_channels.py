"""In-memory trial channel."""

from __future__ import annotations

import json

from nni.trial.encoding import encode_metric
from nni.trial.ports import MetricType


class InMemoryTrialChannel:
    """Trial channel that returns parameters by index and records metrics; see `nni.trial.ports`."""

    def __init__(self, *parameters: object) -> None:
        self.parameter_sets = parameters
        self.metrics: list[tuple[MetricType, object]] = []

    def parameters(self, index: int) -> object:
        """See the port."""
        return self.parameter_sets[index] if index < len(self.parameter_sets) else None

    def report(self, kind: MetricType, value: object) -> None:
        """See the port."""
        self.metrics.append((kind, json.loads(encode_metric(value))))
