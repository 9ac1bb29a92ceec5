"""Deduplication of a tuner's proposals."""

from random import Random
from typing import Final, TypeAlias

from nni.common.hpo_utils.formatting import (
    FormattedParameters,
    FormattedSearchSpace,
    ParameterKey,
    ParameterSpec,
    deformat_parameters,
)
from nni.errors import NoMoreTrialError
from nni.hpo.space.domains import canonical_json

_DRAWS: Final = 200
_MOST_LISTED: Final = 100_000
"""Points of a finite space that are gone through before it counts as exhausted."""
_Point: TypeAlias = FormattedParameters


class Deduplicator:
    """Filter that replaces repeated configurations by new ones.

    Its random numbers are its own and seeded: equal calls in equal order have equal results.

    Args:
        formatted_search_space: of `format_search_space`.

    Examples:
        >>> from nni.common.hpo_utils import Deduplicator, format_search_space
        >>> space = format_search_space({"x": {"_type": "randint", "_value": [0, 2]}})
        >>> deduplicator = Deduplicator(space)
        >>> deduplicator({("x",): 0}), deduplicator({("x",): 0})
        ({('x',): 0}, {('x',): 1})
    """

    def __init__(self, formatted_search_space: FormattedSearchSpace) -> None:
        self._space = formatted_search_space
        self._seen: set[str] = set()
        self._rng = Random(0)

    def __call__(self, formatted_parameters: FormattedParameters) -> FormattedParameters:
        """Return the point itself if it is new, else another one; it counts as seen from now on.

        Raises:
            NoMoreTrialError: all points of the space have been seen.
        """
        point = self._new(formatted_parameters)
        self.add_history(point)
        return point

    def add_history(self, formatted_parameters: FormattedParameters) -> None:
        """Count a point as seen, for instance one that was imported."""
        self._seen.add(self._text(formatted_parameters))

    def _text(self, point: _Point) -> str:
        return canonical_json(deformat_parameters(point, self._space))

    def _new(self, wanted: _Point) -> _Point:
        if self._text(wanted) not in self._seen:
            return wanted
        for _ in range(_DRAWS):
            point = self._drawn()
            if self._text(point) not in self._seen:
                return point
        for point in self._listed():
            if self._text(point) not in self._seen:
                return point
        raise NoMoreTrialError("all points of the search space have been proposed")

    def _drawn(self) -> _Point:
        point: _Point = {}
        for key, spec in self._space.items():
            if _is_active(spec, point):
                point[key] = _draw(spec, self._rng)
        return point

    def _listed(self) -> list[_Point]:
        """Return all configurations of a finite, small space; an empty list for any other."""
        points: list[_Point] = [{}]
        for key, spec in self._space.items():
            numbers = _numbers(spec)
            if numbers is None or len(points) * len(numbers) > _MOST_LISTED:
                return []
            points = [
                {**point, key: number} if number is not None else point
                for point in points
                for number in (numbers if _is_active(spec, point) else [None])
            ]
        return points


def _is_active(spec: ParameterSpec, point: _Point) -> bool:
    parent: ParameterKey = spec.key[:-2]
    return not parent or isinstance(spec.key[-2], str) or spec.is_activated_in(point)


def _draw(spec: ParameterSpec, rng: Random) -> float:
    if spec.categorical:
        return rng.randrange(spec.size)
    if spec.normal_distributed:
        return rng.gauss(spec.mu, spec.sigma)
    return rng.uniform(spec.low, spec.high)


def _numbers(spec: ParameterSpec) -> list[float | None] | None:
    """Return all values that a parameter can take, as numbers; None if too many or continuous."""
    if spec.categorical:
        return list(range(spec.size)) if spec.size <= _MOST_LISTED else None
    if spec.q is None or spec.log_distributed or spec.normal_distributed:
        return None
    assert spec.clip is not None
    first, last = round(spec.clip[0] / spec.q), round(spec.clip[1] / spec.q)
    if last - first > _MOST_LISTED:
        return None
    return [step * spec.q for step in range(first, last + 1)]
