"""Reports of a trial, or of the trials of `optimize`, to TensorBoard.

Uses `torch.utils.tensorboard` where the package `tensorboard` is installed, else `tensorboardX`,
which the extra `nni[tensorboard]` installs.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nni
from nni.integrations._extras import missing_extra
from nni.integrations._tracked_search import TrackedSearch
from nni.integrations.tracking import RunIds, TrackedTrial, is_tracked
from nni.trial import settings

__all__ = ["TensorBoardCallback", "report_to_tensorboard"]

_FOLDER = "tensorboard"


def report_to_tensorboard(log_dir: str | Path | None = None) -> TrackedTrial:
    """Send this trial's parameters, metrics, result to TensorBoard files; return a `TrackedTrial`.

    Intermediate results are scalars with a step, under `default` or the keys of the report. At the
    end parameters and result go to the tab *HParams*, the result below `final/`.

    Args:
        log_dir: folder, below which the trial has one of its own; None: where the web page looks
            for event files in an experiment, and `tensorboard` in the working directory outside of
            one.

    Returns:
        The tracked trial, which may serve as a context manager; its `run` is the `SummaryWriter`.

    Raises:
        ImportError: neither library is installed.
        OSError: the folder cannot be written.

    Examples:
        ```python
        import nni
        from nni.integrations import report_to_tensorboard

        report_to_tensorboard()
        parameters = nni.get_next_parameter()
        nni.report_final_result(0.97)
        ```
    """
    if not is_tracked():
        return TrackedTrial(None)
    return TrackedTrial(_TensorBoardRun(_folder(log_dir)))


class TensorBoardCallback(TrackedSearch):
    """Callback of `nni.hpo.optimize` that writes TensorBoard files of each trial that has ended.

    Scalars and the tab *HParams* are those of `report_to_tensorboard`.

    Args:
        log_dir: folder, below which each trial has the folder `<search>/trial-<number>`.
        search: name of the search; None: a new one.

    Raises:
        ImportError: neither library is installed.

    Examples:
        ```python
        from nni.hpo import Uniform, optimize
        from nni.integrations import TensorBoardCallback

        space = {"x": Uniform(-1, 1)}
        track = TensorBoardCallback("runs", search="square")
        optimize(lambda p: p["x"] ** 2, space, trials=20, callbacks=[track])
        ```
    """

    def __init__(self, log_dir: str | Path = _FOLDER, *, search: str | None = None) -> None:
        _library("TensorBoardCallback")

        def open_run(ids: RunIds) -> "_TensorBoardRun":
            return _TensorBoardRun(Path(log_dir) / ids.group / ids.name)

        super().__init__(open_run, (OSError,), search)


def _folder(log_dir: str | Path | None) -> Path:
    if log_dir is not None:
        return Path(log_dir) / nni.get_experiment_id() / nni.get_trial_id()
    if settings.in_experiment():
        return Path(settings.required(settings.OUTPUT_DIRECTORY)) / _FOLDER
    return Path(_FOLDER)


class _TensorBoardRun:
    """Writer of event files that get a trial's parameters, metrics and result (`RunTracker`)."""

    name = "TensorBoard"
    errors: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, folder: Path) -> None:
        self._library = _library()
        self.run: Any = self._library.SummaryWriter(str(folder))
        self._parameters: dict[str, Any] = {}
        self._result: dict[str, float] = {}

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """Hold the parameters; they are written together with the result."""
        self._parameters = dict(values)

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """Write each number of a step as a scalar."""
        for key, value in values.items():
            self.run.add_scalar(key, value, step)

    def log_result(self, values: Mapping[str, float]) -> None:
        """Hold the result's numbers, as `final/<key>`, until the run is finished."""
        self._result = {f"final/{key}": value for key, value in values.items()}

    def log_outputs(self, path: Path) -> None:
        """Do nothing: event files have no place for outputs."""

    def finish(self, *, succeeded: bool) -> None:
        """Write parameters and result to the tab HParams, the result as scalars too; close."""
        del succeeded  # event files have no place for it
        if self._parameters or self._result:
            # `add_hparams` opens a second file, which has the name of the first in tensorboardX.
            hparams = import_module(f"{self._library.__name__}.summary").hparams
            for summary in hparams(self._parameters, self._result):
                self.run.file_writer.add_summary(summary)
            for key, value in self._result.items():
                self.run.add_scalar(key, value, 0)
        self.run.close()


def _library(name: str = "report_to_tensorboard") -> Any:  # noqa: ANN401 - one of two modules
    if find_spec("tensorboard") is not None and find_spec("torch") is not None:
        return import_module("torch.utils.tensorboard")
    try:
        return import_module("tensorboardX")
    except ImportError as error:
        raise missing_extra(name, "tensorboardX", "tensorboard") from error
