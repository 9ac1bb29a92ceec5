"""Trials whose parameters, metrics and outputs also go to an experiment tracker.

The tracker's own modules are `mlflow`, `tensorboard` and `wandb` of this package.
"""

import atexit
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Protocol

import nni
from nni.trial import settings
from nni.trial.api import wrap_channel
from nni.trial.ports import MetricType, TrialChannel

__all__ = ["TrackedTrial"]

_log = logging.getLogger(__name__)
_KEY = "default"
"""Name of a report that is a plain number."""


@dataclass(frozen=True)
class RunIds:
    """Name, group and tags of a run of a tracker."""

    name: str
    group: str
    """Experiment or search of the trial."""
    tags: Mapping[str, str]


class RunTracker(Protocol):
    """Port to one run of an experiment tracker; calls come one at a time."""

    @property
    def name(self) -> str:
        """Name of the tracker for people."""
        ...

    @property
    def run(self) -> Any:  # noqa: ANN401 - of the tracker
        """Object of the tracker that represents the run."""
        ...

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Errors of the tracker that must not fail the trial."""
        ...

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """Send the parameters, whose values are numbers, booleans or text."""
        ...

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """Send the numbers of an intermediate result, with its step, from 0."""
        ...

    def log_result(self, values: Mapping[str, float]) -> None:
        """Send the result of the trial."""
        ...

    def log_outputs(self, path: Path) -> None:
        """Send a file, or a folder with its files."""
        ...

    def finish(self, *, succeeded: bool) -> None:
        """End the run after all has been sent."""
        ...


class TrackedTrial:
    """Copy of this process's trial to a tracker: parameters, reports, result and outputs.

    Made by `report_to_mlflow`, `report_to_tensorboard` and `report_to_wandb`. From then on the
    parameters that `nni.get_next_parameter` returns go to the tracker, and every report after the
    experiment has it. The end of the process ends the run, or the end of a `with` block. The run
    has succeeded if the trial has reported its result, and the block raised nothing.

    A tracker that fails later does not fail the trial: a warning is logged, and nothing more is
    sent. Of a distributed training, only the first rank is tracked.

    Args:
        tracker: run of the tracker; None: this process is not tracked.
        outputs: file or folder that is sent at the end; None: none.

    Examples:
        ```python
        import nni
        from nni.integrations import report_to_tensorboard

        with report_to_tensorboard("runs") as tracked:
            parameters = {"rate": 0.1, **nni.get_next_parameter()}
            for epoch in range(3):
                nni.report_intermediate_result(epoch * parameters["rate"])
            nni.report_final_result(0.3)
            tracked.run.add_text("note", "see also the figures")
        ```
    """

    def __init__(self, tracker: RunTracker | None, outputs: str | Path | None = None) -> None:
        self._tracker = tracker
        self._outputs = None if outputs is None else Path(outputs)
        self._lock = RLock()
        self._run = None if tracker is None else tracker.run
        self._step = 0
        self._has_parameters = False
        self._has_result = False
        if tracker is not None:
            self._note_parameters(nni.get_current_parameter())
            self._unwrap = wrap_channel(self._wrap)
            atexit.register(self.close)

    @property
    def run(self) -> Any:  # noqa: ANN401 - of the tracker
        """Run of the tracker, for further values; None in a process that is not tracked.

        The id of the run in MLflow, the `SummaryWriter` of TensorBoard, the `Run` of W&B.
        """
        return self._run

    def close(self, *, succeeded: bool = True) -> None:
        """Send the outputs and end the run; later reports go to the experiment only.

        Args:
            succeeded: False: the run has failed, also with a result.
        """
        with self._lock:
            if self._tracker is None:
                return
            if self._outputs is not None:
                self._send_outputs(self._outputs)
            self._guard(lambda tracker: tracker.finish(succeeded=succeeded and self._has_result))
            self._tracker = None
        atexit.unregister(self.close)
        if _present_channel() is self._channel:
            self._unwrap()

    def __enter__(self) -> "TrackedTrial":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(succeeded=kind is None)

    def _wrap(self, channel: TrialChannel) -> TrialChannel:
        self._channel = _TrackedChannel(channel, self)
        return self._channel

    def _note_parameters(self, parameters: object) -> None:
        """Send the first set of parameters; a run of a tracker has one."""
        with self._lock:
            if parameters is None or self._has_parameters:
                return
            self._has_parameters = True
            values = dict(leaves(parameters))
            if values:
                self._guard(lambda tracker: tracker.log_parameters(values))

    def _note_report(self, kind: MetricType, value: object) -> None:
        with self._lock:
            values = dict(numbers(value))
            if kind == "PERIODICAL":
                step, self._step = self._step, self._step + 1
                self._guard(lambda tracker: tracker.log_metrics(values, step))
            elif not self._has_result:
                self._has_result = True
                self._guard(lambda tracker: tracker.log_result(values))

    def _send_outputs(self, path: Path) -> None:
        if path.exists():
            self._guard(lambda tracker: tracker.log_outputs(path))
        else:
            _log.warning("outputs must name a file or folder, got %s, which is missing", path)

    def _guard(self, send: "_Send") -> None:
        """Call the tracker; after its first error log a warning and send nothing more."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            send(tracker)
        except tracker.errors as error:
            self._tracker = None
            _log.warning(
                "%s gets nothing more from trial %s, which goes on: %s",
                tracker.name,
                nni.get_trial_id(),
                error,
            )


class _Send(Protocol):
    def __call__(self, tracker: RunTracker) -> None: ...


class _TrackedChannel:
    """Trial channel that delegates to another one and copies its traffic to a tracker."""

    def __init__(self, channel: TrialChannel, tracked: TrackedTrial) -> None:
        self._channel = channel
        self._tracked = tracked

    def parameters(self, index: int) -> object:
        """Return the inner channel's parameters; send the first set to the tracker."""
        parameters = self._channel.parameters(index)
        self._tracked._note_parameters(parameters)  # noqa: SLF001 - two classes, one object
        return parameters

    def report(self, kind: MetricType, value: object) -> None:
        """Report to the experiment first, then to the tracker."""
        self._channel.report(kind, value)
        self._tracked._note_report(kind, value)  # noqa: SLF001 - two classes, one object


def is_tracked() -> bool:
    """Return whether this process has rank zero in its trial; others are not tracked."""
    return settings.is_first_rank()


def secret_from(variable: str | None, argument: str) -> str | None:
    """Return the secret in a named variable; None without a name; raise if the variable is unset.

    Args:
        variable: name of the variable.
        argument: name of the argument that names it, for the error.

    Raises:
        ValueError: the variable is not set, or empty.
    """
    if variable is None:
        return None
    secret = settings.environment().get(variable)
    if not secret:
        # A secret in place of the name must not reach a log.
        raise ValueError(
            f"{argument} must be the name of an environment variable that holds the secret, got "
            "one that is not set (not shown: it may be the secret); set the variable for the trial"
        )
    return secret


def ids_of_trial() -> RunIds:
    """Return the ids of the run of this process's trial."""
    experiment, trial = nni.get_experiment_id(), nni.get_trial_id()
    tags = {
        "nni.experiment_id": experiment,
        "nni.trial_id": trial,
        "nni.sequence_id": str(nni.get_sequence_id()),
    }
    return RunIds(trial, experiment, tags)


def _present_channel() -> TrialChannel:
    found: list[TrialChannel] = []

    def note(channel: TrialChannel) -> TrialChannel:
        found.append(channel)
        return channel

    wrap_channel(note)()
    return found[0]


def leaves(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested parameters by path; values of other types as text."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from leaves(child, f"{path}/{key}" if path else str(key))
    else:
        is_plain = isinstance(value, str | bool | int | float)
        yield path or "parameters", value if is_plain else str(value)


def numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in a report, by path; other values are left out."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from numbers(child, f"{path}/{key}" if path else str(key))
    elif not isinstance(value, str | bytes | list | tuple) and value is not None:
        try:
            yield path or _KEY, float(value)  # type: ignore[arg-type] # a scalar of any library
        except (TypeError, ValueError):
            return
