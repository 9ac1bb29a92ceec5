"""Groups of models that are trained together, and the metrics that each of them gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from nni.nas.space import ExecutableModelSpace, Metrics

T = TypeVar("T")


def grouped(
    models: Sequence[T], limit: int, fit: Callable[[T, T], bool] = lambda one, other: True
) -> list[list[T]]:
    """Return models in groups of up to `limit`; each joins the first whose first model fits it.

    Args:
        models: models in the order of their submission.
        limit: models of a group at most: devices of the trial.
        fit: whether two models can be trained together.

    Returns:
        Groups; each model is in the first that has a free place and that it fits.

    Raises:
        ValueError: `limit` is smaller than 1.

    Examples:
        >>> grouped("abc", 4), grouped("abc", 2), grouped("abc", 1)
        ([['a', 'b', 'c']], [['a', 'b'], ['c']], [['a'], ['b'], ['c']])
    """
    if limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    groups: list[list[T]] = []
    for model in models:
        for group in groups:
            if len(group) < limit and fit(group[0], model):
                group.append(model)
                break
        else:
            groups.append([model])
    return groups


def metrics_by_model(metrics: Any, count: int) -> list[Any]:  # noqa: ANN401 - what a trial reported
    """Return the metrics of a group as a list; raise ValueError unless there is one per model.

    Args:
        metrics: what the trial reported: a list in the order of the models.
        count: number of models.

    Returns:
        A list of that length.

    Raises:
        ValueError: it is no list, or of another length.

    Examples:
        >>> metrics_by_model([0.5, 0.7], 2)
        [0.5, 0.7]
    """
    if not isinstance(metrics, list | tuple) or len(metrics) != count:
        raise ValueError(
            f"a trial of {count} models must report a list of {count} metrics, got {metrics!r:.200}"
        )
    return list(metrics)


class MergedMetrics(Metrics):
    """Metrics of a trial of several models: none, because each model has its own.

    Args:
        strict: as for `Metrics`.
        models: models of the trial, whose metrics are removed with those of the trial: the engine
            removes the metrics of an attempt that was lost with its machine.

    Examples:
        >>> MergedMetrics().intermediates
        []
    """

    def __init__(
        self,
        strict: bool = True,  # noqa: FBT001, FBT002 - as in the base
        models: Sequence[ExecutableModelSpace] = (),
    ) -> None:
        super().__init__(strict)
        self._models = tuple(models)

    def clear(self) -> None:
        """Remove all metrics, also those of the merged models."""
        super().clear()
        for model in self._models:
            model.metrics.clear()
