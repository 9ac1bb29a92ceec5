"""Conversion of results of earlier searches, in any supported form, to samples."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from nni.hpo.json_value import JsonValue


@runtime_checkable
class HasResults(Protocol):
    """Interface of objects, such as `Study`, that list their trials with results."""

    @property
    def results(self) -> "Sequence[tuple[HasParameters, JsonValue]]":
        """Trials with their results."""
        ...


@runtime_checkable
class HasTrials(Protocol):
    """Interface of objects with trial records in `trials`, such as the result of `optimize`."""

    @property
    def trials(self) -> "Sequence[HasResult]":
        """All trials."""
        ...


class HasParameters(Protocol):
    """Interface of objects with a configuration in `parameters`, such as a trial of a study."""

    @property
    def parameters(self) -> JsonValue:
        """Configuration of the trial."""
        ...


class HasResult(HasParameters, Protocol):
    """Interface of trial records that have the objective's return value in `result`."""

    @property
    def result(self) -> JsonValue:
        """Return value of the objective; None if the trial failed."""
        ...


EarlierResults: TypeAlias = (
    "str | Path | Mapping[str, JsonValue] | HasResults | HasTrials | Iterable[JsonValue] | None"
)
"""A `Study`, a result of `optimize`, a sample, the path of a file of samples, or several."""


def samples_of(earlier: EarlierResults) -> Iterator[dict[str, JsonValue]]:
    """Yield `{"parameter", "value"}` samples of a search, file or iterable; ValueError for others.

    Raises:
        ValueError: an item has none of the forms above, or a file is no list of samples.
        OSError: a file cannot be read.
    """
    if earlier is None:
        return
    if isinstance(earlier, HasResults | HasTrials):
        yield from _of_search(earlier)
    elif isinstance(earlier, str | Path):
        yield from _in_file(Path(earlier).expanduser())
    elif isinstance(earlier, Mapping):
        yield _checked(earlier)
    elif isinstance(earlier, Iterable):
        for item in earlier:
            yield from samples_of(item)
    else:
        raise _wrong(earlier)


def searches_of(earlier: EarlierResults) -> Iterator[tuple[dict[str, JsonValue], ...]]:
    """Yield the samples of each earlier search; samples that stand alone are one search.

    Raises:
        ValueError: an item has none of the forms of `samples_of`, or a file is no list of samples.
        OSError: a file cannot be read.
    """
    if earlier is None:
        return
    if isinstance(earlier, str | Path | Mapping | HasResults | HasTrials) or not isinstance(
        earlier, Iterable
    ):
        yield tuple(samples_of(earlier))
        return
    alone: list[dict[str, JsonValue]] = []
    for item in earlier:
        if isinstance(item, Mapping):
            alone.append(_checked(item))
        else:
            yield tuple(samples_of(item))
    if alone:
        yield tuple(alone)


WarmStartWay: TypeAlias = Literal["value", "rank"]
"""Use of earlier results: as results of the same objective, or by their ranks in their search."""

WARM_START_WAYS: Final = get_args(WarmStartWay)


def split_by_way(
    earlier: EarlierResults, way: WarmStartWay
) -> tuple[tuple[JsonValue, ...], tuple[tuple[JsonValue, ...], ...]]:
    """Return the samples that enter by value, and those of each search that enters by rank.

    Args:
        earlier: results of earlier searches.
        way: `value` or `rank`; one of the two returned tuples is empty.

    Raises:
        ValueError: the way is another one, or `samples_of` rejects the results.
    """
    if way not in WARM_START_WAYS:
        raise ValueError(f"warm_start_by must be one of {', '.join(WARM_START_WAYS)}; got {way!r}")
    if way == "rank":
        return (), tuple(searches_of(earlier))
    return tuple(samples_of(earlier)), ()


def _of_search(search: HasResults | HasTrials) -> Iterator[dict[str, JsonValue]]:
    if isinstance(search, HasResults):
        for trial, value in search.results:
            yield {"parameter": trial.parameters, "value": value}
        return
    for record in search.trials:
        if record.result is not None:
            yield {"parameter": record.parameters, "value": record.result}


def _in_file(path: Path) -> Iterator[dict[str, JsonValue]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"warm_start_from: {path} is no JSON: {error}") from error
    if not isinstance(content, list):
        raise ValueError(f"warm_start_from: {path} must hold a list of samples")  # noqa: TRY004 - one type for all faults of an input
    for item in content:
        yield _checked(item)


def _checked(item: object) -> dict[str, JsonValue]:
    if isinstance(item, Mapping) and "parameter" in item and "value" in item:
        return {"parameter": item["parameter"], "value": item["value"]}
    raise _wrong(item)


def _wrong(item: object) -> ValueError:
    return ValueError(
        "warm_start_from must be a Study, a result of optimize, samples with 'parameter' and "
        f"'value', or the path of a file of them; got {item!r:.200}"
    )
