"""Query of NDS."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from nni.nas.benchmark.database import Row, check_reduction
from nni.nas.benchmark.files import load_schema
from nni.nas.benchmark.nds.records import NDS_SCHEMA


def query_nds_trial_stats(  # noqa: PLR0913 - NNI's signature
    model_family: str | None,
    proposer: str | None,
    generator: str | None,
    model_spec: Mapping[str, Any] | None,
    cell_spec: Mapping[str, Any] | None,
    dataset: str | None,
    num_epochs: float | None = None,
    reduction: str | None = None,
    include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
) -> Generator[Row, None, None]:
    """Yield the trials of NDS that fulfil all conditions; None matches every value.

    Args:
        model_family: family of the network.
        proposer: paper that proposed the space.
        generator: how the configuration was drawn.
        model_spec: hyperparameters of the network, as in `NdsTrialConfig`.
        cell_spec: cells of the network; `{}` matches the networks that have none.
        dataset: name of the data set.
        num_epochs: planned epochs.
        reduction: None or `"none"` for each trial, `"mean"` for the mean of each config.
        include_intermediates: add the results in the course of a training as `intermediates`.

    Returns:
        Generator of dictionaries: fields of `NdsTrialStats`, and `id`.

    Raises:
        ValueError: `reduction` is unknown.
        BenchmarkFileMissingError: the benchmark is not on this machine.

    Examples:
        >>> query_nds_trial_stats(None, "amoeba", None, None, None, None, reduction="sum")
        Traceback (most recent call last):
        ValueError: reduction must be None, 'none' or 'mean', got 'sum'
    """
    check_reduction(reduction)
    conditions = {
        "model_family": model_family,
        "proposer": proposer,
        "generator": generator,
        "model_spec": model_spec,
        "cell_spec": cell_spec,
        "dataset": dataset,
        "num_epochs": num_epochs,
    }
    return load_schema(NDS_SCHEMA).query(
        conditions, reduction=reduction, include_intermediates=include_intermediates
    )
