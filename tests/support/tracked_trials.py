"""Trial that reports as trials of users do, to be tracked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nni
from nni.integrations import TrackedTrial
from nni.trial.api import exchange_channel
from nni.trial.ports import MetricType

PARAMETERS = {"rate": 0.5, "layer": {"kind": "conv", "width": 8}, "stages": [1, 2]}
REPORTS = (1.5, {"default": 0.5, "note": "text", "of": {"b": 2}})


class _ParametersChannel:
    """Trial channel with parameters, which drops the reports."""

    def parameters(self, index: int) -> object:
        """See `nni.trial.ports.TrialChannel`."""
        return PARAMETERS if index == 0 else None

    def report(self, kind: MetricType, value: object) -> None:
        """See `nni.trial.ports.TrialChannel`."""


def run_trial(start: Callable[[], TrackedTrial], *, result: Any = 0.25) -> TrackedTrial:
    """Run a trial of two intermediate results and a result; return it closed.

    Args:
        start: returns the tracked trial.
        result: of the trial; None: it reports none.
    """
    bring_back = exchange_channel(_ParametersChannel())
    try:
        with start() as tracked:
            nni.get_next_parameter()
            for report in REPORTS:
                nni.report_intermediate_result(report)
            if result is not None:
                nni.report_final_result(result)
    finally:
        bring_back()
    return tracked
