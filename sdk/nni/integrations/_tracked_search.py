"""Trials of `nni.hpo.optimize` that also go to an experiment tracker."""

import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from nni.hpo.search.evaluation import TrialRecord
from nni.integrations.tracking import RunIds, RunTracker, leaves, numbers

_log = logging.getLogger(__name__)

Outputs: TypeAlias = Callable[[TrialRecord], str | Path | None]
"""Function that returns the file or folder that a trial has written; None: none."""


class TrackedSearch:
    """Callback of `optimize` that makes a run of a tracker of each trial that has ended.

    A tracker that fails does not fail the search: a warning is logged, and nothing more is sent.

    Args:
        open_run: returns a new run of the tracker.
        errors: errors of the tracker that must not fail the search.
        search: name of the search; None: a new one.
        outputs: returns what a trial has written.
    """

    def __init__(
        self,
        open_run: Callable[[RunIds], RunTracker],
        errors: tuple[type[Exception], ...],
        search: str | None,
        outputs: Outputs | None = None,
    ) -> None:
        self.search = f"search-{secrets.token_hex(4)}" if search is None else search
        """Name of the search, by which the tracker groups its trials."""
        self._open_run = open_run
        self._errors = errors
        self._outputs = outputs
        self._has_failed = False

    def __call__(self, record: TrialRecord) -> None:
        """Send a trial to the tracker; after its first error warn, and send nothing more.

        Args:
            record: of a trial that has ended.
        """
        if self._has_failed:
            return
        outputs = None if self._outputs is None else self._outputs(record)
        try:
            run = self._open_run(self._ids(record))
            _send(record, run)
            if outputs is not None:
                _send_outputs(Path(outputs), run)
            run.finish(succeeded=record.status != "FAILED")
        except self._errors as error:
            self._has_failed = True
            _log.warning(
                "the tracker gets nothing more of %s, which goes on, from trial %d on: %s",
                self.search,
                record.id,
                error,
            )

    def _ids(self, record: TrialRecord) -> RunIds:
        tags = {
            "nni.search": self.search,
            "nni.trial_id": str(record.id),
            "nni.status": record.status,
        }
        return RunIds(f"trial-{record.id}", self.search, tags)


def _send(record: TrialRecord, run: RunTracker) -> None:
    parameters = dict(leaves(record.parameters))
    if parameters:
        run.log_parameters(parameters)
    for step, report in enumerate(record.intermediate):
        run.log_metrics(dict(numbers(report)), step)
    if record.status == "SUCCEEDED":
        run.log_result(dict(numbers(record.result)))


def _send_outputs(path: Path, run: RunTracker) -> None:
    if path.exists():
        run.log_outputs(path)
    else:
        _log.warning("outputs must return a file or folder, got %s, which is missing", path)
