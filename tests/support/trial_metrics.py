"""Metrics that the code under test reports by the trial API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from nni.trial.api import exchange_channel
from nni.trial.ports import MetricType

Metrics: TypeAlias = list[tuple[MetricType, Any]]
"""Kind and value of each report, oldest first."""


class _RecordingTrialChannel:
    """Trial channel that keeps the reports; a trial without parameters."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def parameters(self, index: int) -> object:
        """See `nni.trial.ports.TrialChannel`: an empty dict."""
        del index
        return {}

    def report(self, kind: MetricType, value: object) -> None:
        """See `nni.trial.ports.TrialChannel`: keep the value."""
        self._metrics.append((kind, value))


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    """Return the reports of this process, which grow during the test."""
    found: Metrics = []
    bring_back = exchange_channel(_RecordingTrialChannel(found), strict=False)
    yield found
    bring_back()
