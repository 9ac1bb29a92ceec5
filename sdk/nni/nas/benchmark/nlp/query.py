"""Query of the NLP benchmark."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from nni.nas.benchmark.database import Row, check_reduction
from nni.nas.benchmark.files import load_schema
from nni.nas.benchmark.nlp.records import NLP_SCHEMA


def query_nlp_trial_stats(
    arch: Mapping[str, Any] | None,
    dataset: str | None,
    reduction: str | None = None,
    include_intermediates: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
) -> Generator[Row, None, None]:
    """Yield the trials of the NLP benchmark that fulfil all conditions; None matches every value.

    Args:
        arch: recipe of a recurrent cell; None matches every cell.
        dataset: `"ptb"` or `"wikitext-2"`; None matches both.
        reduction: None or `"none"` for each trial, `"mean"` for the mean of each config.
        include_intermediates: add the results in the course of a training as `intermediates`.

    Returns:
        Generator of dictionaries: fields of `NlpTrialStats`, and `id`.

    Raises:
        ValueError: `reduction` is unknown.
        BenchmarkFileMissingError: the benchmark is not on this machine.

    Examples:
        >>> query_nlp_trial_stats(None, "ptb", reduction="sum")
        Traceback (most recent call last):
        ValueError: reduction must be None, 'none' or 'mean', got 'sum'
    """
    check_reduction(reduction)
    return load_schema(NLP_SCHEMA).query(
        {"arch": arch, "dataset": dataset},
        reduction=reduction,
        include_intermediates=include_intermediates,
    )
