"""Functions of NNI 2.x that custom strategies call, on the engine of the running search."""

from __future__ import annotations

from collections.abc import Iterable

from nni.mutable import Sample
from nni.nas.execution import ExecutionEngine
from nni.nas.space import ExecutableModelSpace, GraphModelSpace, ModelStatus


class SearchEnded(BaseException):
    """Raised in a strategy that asks for resources again after the budget has ended.

    Strategies of NNI 2.x may ask forever. No subclass of `Exception`, so that they do not take it
    for a failure of a model.
    """


class _RunningSearch:
    """Process-wide engine of the running search, and whether a strategy knows of its end."""

    engine: ExecutionEngine | None = None
    is_end_known = False
    """Whether the strategy has been answered that there are no resources after the end."""


_search = _RunningSearch()


def set_execution_engine(engine: ExecutionEngine | None) -> None:
    """Set the engine that the functions of this module use.

    Args:
        engine: engine of the running search; None for none.
    """
    _search.engine = engine
    _search.is_end_known = False


def get_execution_engine() -> ExecutionEngine:
    """Return the engine of the running search; raise RuntimeError if none runs.

    Raises:
        RuntimeError: no search runs.
    """
    if _search.engine is None:
        raise RuntimeError("no search runs: the strategy is called by RetiariiExperiment.run")
    return _search.engine


def get_and_register_default_listener(engine: ExecutionEngine) -> ExecutionEngine:
    """Return the engine, which updates models by itself.

    Args:
        engine: any engine.
    """
    return engine


def submit_models(*models: ExecutableModelSpace) -> None:
    """Freeze mutated models by the choices that made them; submit all to the running search.

    Args:
        *models: mutated models, which are frozen; or frozen models.
    """
    for model in models:
        if isinstance(model, GraphModelSpace) and model.status is ModelStatus.Mutating:
            model.sample = mutation_sample(model)
            model.status = ModelStatus.Frozen
    get_execution_engine().submit_models(*models)


def list_models(status: ModelStatus | None = None) -> Iterable[ExecutableModelSpace]:
    """Return the models that were submitted.

    Args:
        status: only those of this status; None for all.
    """
    return get_execution_engine().list_models(status)


def wait_models(*models: ExecutableModelSpace) -> None:
    """Wait until models are completed.

    Args:
        *models: the models; none for all that were submitted.
    """
    get_execution_engine().wait_models(*models)


def query_available_resources() -> int:
    """Return 1 if a worker is idle, else 0; SearchEnded: asked again after the budget ended.

    Raises:
        SearchEnded: the budget has ended, and this was answered by 0 before.
    """
    engine = get_execution_engine()
    if engine.budget_available():
        return int(engine.idle_worker_available())
    if _search.is_end_known:
        raise SearchEnded
    _search.is_end_known = True
    return 0


def budget_exhausted() -> bool:
    """Return whether no more models may be submitted."""
    return not get_execution_engine().budget_available()


def is_stopped_exec(model: ExecutableModelSpace) -> bool:
    """Return whether a model has ended.

    Args:
        model: submitted model.
    """
    return model.status.completed()


def mutation_sample(model: GraphModelSpace) -> Sample:
    """Return the choices by which a model was made, by label.

    Args:
        model: result of mutators that were applied one after another.
    """
    sample: Sample = {}
    for made in [*model.history, model]:
        if made.parent is None:
            continue  # the base model
        label, samples = made.parent.mutator.label, made.parent.samples
        if len(samples) == 1:
            sample[label] = samples[0]
        else:
            sample.update({f"{label}/{index}": value for index, value in enumerate(samples)})
    return sample
