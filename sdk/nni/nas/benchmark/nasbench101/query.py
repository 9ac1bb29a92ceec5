"""Query of NAS-Bench-101."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from nni.nas.benchmark.database import Row, check_reduction
from nni.nas.benchmark.files import load_schema
from nni.nas.benchmark.nasbench101.graph_util import hash_module, infer_num_vertices
from nni.nas.benchmark.nasbench101.records import NB101_SCHEMA


def query_nb101_trial_stats(
    arch: Mapping[str, Any] | None,
    num_epochs: int | None,
    isomorphism: bool = True,  # noqa: FBT001, FBT002 - NNI's signature
    reduction: str | None = None,
    include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
) -> Generator[Row, None, None]:
    """Yield NAS-Bench-101 trials that match all conditions (None: any); isomorphic cells match.

    Args:
        arch: cell, as the field `arch` of `Nb101TrialConfig`; None matches every cell.
        num_epochs: planned epochs; None matches every schedule.
        isomorphism: match all cells with the same graph; else the cell as it is written.
        reduction: None or `"none"` for each trial, `"mean"` for the mean of each config.
        include_intermediates: add the results in the course of a training as `intermediates`.

    Returns:
        Generator of dictionaries: fields of `Nb101TrialStats`, and `id`.

    Raises:
        ValueError: `reduction` is unknown, or `arch` is no cell.
        BenchmarkFileMissingError: the benchmark is not on this machine.

    Examples:
        >>> query_nb101_trial_stats(None, 108, reduction="sum")
        Traceback (most recent call last):
        ValueError: reduction must be None, 'none' or 'mean', got 'sum'
    """
    check_reduction(reduction)
    conditions: dict[str, object] = {"num_epochs": num_epochs}
    if arch is not None and isomorphism:
        conditions["hash"] = hash_module(arch, infer_num_vertices(arch))
    else:
        conditions["arch"] = arch
    return load_schema(NB101_SCHEMA).query(
        conditions, reduction=reduction, include_intermediates=include_intermediates
    )
