"""One-shot search that is one trial of the platform."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Self

import nni
from nni.nas.evaluator.trial_reports import present_reporter
from nni.nas.execution import (
    ExecutionEngine,
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEventType,
    SequentialExecutionEngine,
)
from nni.nas.execution.construction import construction_of
from nni.nas.execution.searched_architecture import architecture_of, architecture_result
from nni.nas.space import (
    ExecutableModelSpace,
    ModelStatus,
    RawFormatModelSpace,
    SimplifiedModelSpace,
)
from nni.nas.strategy.delegated import DelegatedStrategy
from nni.nas.strategy.oneshot.base import CHECKPOINT, OneShotStrategy
from nni.nas.strategy.oneshot.resumable_loader import ResumableLoaders
from nni.nas.strategy.oneshot.supernet_checkpoint import EVERY_S, NAME, SupernetCheckpoint

FOLDER: Final = "checkpoint/supernet"
"""Folder of the checkpoint in the folder of a trial: in that which its next attempt gets."""
_STANDALONE: Final = "STANDALONE"
"""Id of a trial outside an experiment."""
_TRIAL_FOLDER: Final = "NNI_OUTPUT_DIR"
_STRATEGY: Final = "strategy"


class SupernetSearch(SimplifiedModelSpace):
    """One-shot search of a space, which travels to a trial as a model does.

    `execute` constructs the space, trains it as a supernet and reports the architecture. The
    checkpoint is that of the trial: another attempt goes on from it, in the middle of an epoch and
    on whatever machine. So does another trial of the experiment on the same machine, after a stop
    and a resumption. Once the architecture is known it is the model of this architecture.

    Attributes:
        strategy: one-shot strategy that was not used; None for a model of an architecture.
    """

    strategy: OneShotStrategy | None = None

    @classmethod
    def of(cls, space: SimplifiedModelSpace, strategy: OneShotStrategy) -> Self:
        """Return the frozen search of a space by a one-shot strategy, ready for submission.

        Args:
            space: space with its evaluator.
            strategy: one-shot strategy that was not used.
        """
        search = cls(
            space.model_symbol,
            space.model_args,
            space.model_kwargs,
            space.mutables,
            space.evaluator,
        )
        search.strategy = strategy
        search.status = ModelStatus.Frozen
        return search

    def take_result(self, metric: object) -> object:
        """Set the sample by a result's architecture, if none is set; return the result.

        Args:
            metric: result of the trial.

        Returns:
            The same.
        """
        architecture = architecture_of(metric, self.simplify()) if self.sample is None else None
        if architecture is not None:
            self.sample = architecture
        return metric

    def execute(self) -> Any:  # noqa: ANN401 - of the base class
        """Search, report the architecture, return None; once there is a sample, evaluate it.

        Returns:
            What the evaluator of such a model returns; None after a search.
        """
        if self.sample is not None or self.strategy is None:
            return super().execute()
        found = os.environ.get(_TRIAL_FOLDER)
        # Without an agent that copies it, the file alone is the checkpoint.
        travels = bool(found) and nni.get_trial_id() != _STANDALONE
        complete = nni.save_checkpoint if travels else _keep_nothing
        result = search_in_trial(self, Path(found) if found else None, complete)
        nni.report_final_result(result)
        return None

    def _dump(self) -> dict[str, Any]:
        return {**super()._dump(), _STRATEGY: construction_of(self.strategy)}

    @classmethod
    def _load(cls, *, strategy: OneShotStrategy | None = None, **parts: Any) -> Self:  # noqa: ANN401 - of the base class
        status = parts.get("status", ModelStatus.Initialized.value)
        search = super()._load(**parts)
        search.strategy = strategy
        search.status = ModelStatus(status)
        return search


def _keep_nothing(_step: int) -> None:
    """Do nothing: no copy of a checkpoint is kept."""


def search_in_trial(
    search: SupernetSearch,
    trial_folder: Path | None,
    complete: Callable[[int], object] = _keep_nothing,
    every_s: float = EVERY_S,
) -> dict[str, Any]:
    """Train the supernet of a search, from its last checkpoint; return the result of the trial.

    Args:
        search: search with a strategy that was not used.
        trial_folder: folder of the trial; None: no checkpoint is written.
        complete: called with the number of steps when a checkpoint is complete.
        every_s: least time between two checkpoints within an epoch, in seconds.

    Raises:
        TypeError: space or evaluator do not fit the strategy.
    """
    strategy = search.strategy
    assert strategy is not None
    space = RawFormatModelSpace(search.build_model(), search.evaluator)
    engine = SequentialExecutionEngine()
    loaders = ResumableLoaders()
    if trial_folder is not None:
        strategy.wrap_loaders = loaders.wrap
    strategy.initialize(space, engine)
    report = present_reporter()  # that of the trial: the engine redirects reports to its events
    checkpoint = SupernetCheckpoint(
        Path() if trial_folder is None else trial_folder / FOLDER,
        lambda metric: report("PERIODICAL", metric),
        loaders,
        complete,
        every_s,
    )
    finals: list[object] = []
    engine.register_model_event_callback(
        ModelEventType.IntermediateMetric, lambda event: _note(checkpoint, event)
    )
    engine.register_model_event_callback(
        ModelEventType.FinalMetric, lambda event: _keep(finals, event)
    )
    if trial_folder is not None:
        space.evaluator.trainer.callbacks.append(checkpoint)  # type: ignore[union-attr] # checked
        strategy.load_state_dict({CHECKPOINT: newest_checkpoint(trial_folder)})
    strategy.run()
    metric = finals[0] if finals else checkpoint.last_metric
    return architecture_result(metric, strategy.export())


def _note(checkpoint: SupernetCheckpoint, event: Any) -> None:  # noqa: ANN401 - narrowed below
    assert isinstance(event, IntermediateMetricEvent)
    checkpoint.note(event.metric)


def _keep(finals: list[object], event: Any) -> None:  # noqa: ANN401 - narrowed below
    assert isinstance(event, FinalMetricEvent)
    finals.append(event.metric)


def newest_checkpoint(trial_folder: Path) -> str | None:
    """Return the path of the trial's checkpoint, else the newest of others; None: there is none.

    That of this trial counts, otherwise the newest one of the other trials of the experiment.

    Args:
        trial_folder: folder of the trial, beside those of the others.
    """
    own = trial_folder / FOLDER / NAME
    if own.is_file():
        return str(own)
    others: Iterable[Path] = trial_folder.parent.glob(f"*/{FOLDER}/{NAME}")
    found = max(others, key=lambda one: one.stat().st_mtime_ns, default=None)
    return None if found is None else str(found)


class OneTrialStrategy(DelegatedStrategy):
    """Strategy that submits a one-shot search as one model.

    Args:
        delegate: one-shot strategy of the trial; it is not used here.

    Attributes:
        delegate: the same.

    Raises:
        TypeError: the space has no simplified format.
    """

    delegate: OneShotStrategy

    def __init__(self, delegate: OneShotStrategy) -> None:
        super().__init__(delegate)

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        if not isinstance(model_space, SimplifiedModelSpace):
            raise TypeError(
                f"{type(self.delegate).__name__} in a trial needs the simplified format, got "
                f"{type(model_space).__name__}; set config.model_format = 'simplified'"
            )
        return super()._initialize(model_space, engine)

    def _run(self) -> None:
        space = self.model_space
        assert isinstance(space, SimplifiedModelSpace)
        if self.wait_for_resource():
            self.engine.submit_models(SupernetSearch.of(space, self.delegate))
