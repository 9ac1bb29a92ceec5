"""Query of NAS-Bench-201."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from nni.nas.benchmark.database import Row, check_reduction
from nni.nas.benchmark.files import load_schema
from nni.nas.benchmark.nasbench201.records import NB201_SCHEMA


def query_nb201_trial_stats(
    arch: Mapping[str, Any] | None,
    num_epochs: int | None,
    dataset: str | None,
    reduction: str | None = None,
    include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
) -> Generator[Row, None, None]:
    """Yield the trials of NAS-Bench-201 that fulfil all conditions; None matches every value.

    Args:
        arch: cell, as the field `arch` of `Nb201TrialConfig`; None matches every cell.
        num_epochs: planned epochs; None matches every schedule.
        dataset: name of the data set; None matches all.
        reduction: None or `"none"` for each trial, `"mean"` for the mean of each config.
        include_intermediates: add the results in the course of a training as `intermediates`.

    Returns:
        Generator of dictionaries: fields of `Nb201TrialStats`, and `id`.

    Raises:
        ValueError: `reduction` is unknown.
        BenchmarkFileMissingError: the benchmark is not on this machine.

    Examples:
        >>> query_nb201_trial_stats(None, 200, "cifar100", reduction="sum")
        Traceback (most recent call last):
        ValueError: reduction must be None, 'none' or 'mean', got 'sum'
    """
    check_reduction(reduction)
    return load_schema(NB201_SCHEMA).query(
        {"arch": arch, "num_epochs": num_epochs, "dataset": dataset},
        reduction=reduction,
        include_intermediates=include_intermediates,
    )
