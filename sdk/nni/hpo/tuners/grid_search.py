"""Grid search: every combination of a finite space, each exactly once.

The grid is never held in memory: combination number i is decoded from i, so that a grid of 10^12
points costs no more than one of ten.
"""

import logging
from collections.abc import Iterable
from typing import ClassVar

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner, checked_optimize_mode
from nni.hpo.domains import Branch, Choice, Integer, Parameter, Space, Uniform
from nni.hpo.json_value import JsonValue
from nni.hpo.samples import samples
from nni.hpo.space import parse_space

_logger = logging.getLogger(__name__)

GRID_TYPES = ("choice", "randint", "quniform")
"""The `_type`s whose support is finite."""


class GridSearchTuner(Tuner):
    """Hands out the Cartesian product of the space in a fixed order.

    The last parameter turns fastest.

    Imported configurations and, after a change of the space, those handed out before, are skipped.

    Args:
        optimize_mode: accepted because all tuners have it; without effect.
    """

    lookahead: ClassVar[bool] = True

    def __init__(self, optimize_mode: str = "minimize") -> None:
        checked_optimize_mode(optimize_mode)
        self._space = Space(())
        self._size = 0
        self._next = 0
        self._skip: set[int] = set()
        self._handed_out: list[dict[str, JsonValue]] = []

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base."""
        self._space = parse_space(search_space, algorithm="GridSearch", types=GRID_TYPES)
        self._size = _size(self._space)
        self._next, self._skip = 0, set()
        self._mark(self._handed_out)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        del parameter_id, kwargs
        while self._next in self._skip:
            self._skip.discard(self._next)
            self._next += 1
        if self._next >= self._size:
            raise NoMoreTrialError(f"all {self._size} combinations have been handed out")
        configuration = _decode(self._space, self._next)
        self._next += 1
        self._handed_out.append(configuration)
        return configuration

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base; ignored."""

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Skip the configurations that were measured elsewhere."""
        imported = [sample.parameter for sample in samples(data)]
        skipped = self._mark(imported)
        self._handed_out += [c for c in imported if isinstance(c, dict)]
        if skipped < len(imported):
            _logger.warning(
                "GridSearch: %d of %d imported samples are no points of the grid",
                len(imported) - skipped,
                len(imported),
            )

    def state(self) -> dict[str, JsonValue]:
        """Return what `load_state` needs to go on from here, as JSON."""
        return {"next": self._next, "skip": sorted(self._skip), "handed_out": self._handed_out}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state of a tuner that was built and given its space alike."""
        self._next, self._skip = int(state["next"]), set(state["skip"])
        self._handed_out = list(state["handed_out"])

    def _mark(self, configurations: Iterable[object]) -> int:
        marked = 0
        for configuration in configurations:
            try:
                index = _encode(self._space, configuration)
            except ValueError:
                continue
            marked += 1
            if index >= self._next:
                self._skip.add(index)
        return marked


def _count(parameter: Parameter) -> int:
    """Return how many values one parameter has, those inside its branches included."""
    domain = parameter.domain
    if isinstance(domain, Integer):
        return domain.upper - domain.lower
    if isinstance(domain, Uniform):
        first, last = domain.steps()
        return last - first + 1
    assert isinstance(domain, Choice)
    return sum(_option_size(option) for _, option in _distinct(domain))


def _distinct(choice: Choice) -> list[tuple[int, object]]:
    """Return (position, option) of the options that are not listed before."""
    pairs = enumerate(choice.options)
    return [(i, o) for i, o in pairs if isinstance(o, Branch) or choice.position(o) == i]


def _option_size(option: object) -> int:
    return _size(option.space) if isinstance(option, Branch) else 1


def _size(space: Space) -> int:
    size = 1
    for parameter in space.parameters:
        size *= _count(parameter)
    return size


def _decode(space: Space, index: int) -> dict[str, JsonValue]:
    """Return combination number `index` of a space."""
    values: dict[str, JsonValue] = {}
    for parameter in reversed(space.parameters):
        index, digit = divmod(index, _count(parameter))
        values[parameter.key] = _value(parameter, digit)
    return {parameter.key: values[parameter.key] for parameter in space.parameters}


def _value(parameter: Parameter, digit: int) -> JsonValue:
    domain = parameter.domain
    if isinstance(domain, Integer):
        return domain.lower + digit
    if isinstance(domain, Uniform):
        assert domain.q is not None
        return domain.snap((domain.steps()[0] + digit) * domain.q)
    assert isinstance(domain, Choice)
    for _, option in _distinct(domain):
        size = _option_size(option)
        if digit < size:
            if isinstance(option, Branch):
                return {"_name": option.name, **_decode(option.space, digit)}
            return option
        digit -= size
    raise AssertionError(f"digit beyond the options of {parameter.path!r}")


def _encode(space: Space, configuration: object) -> int:
    """Return the number of a combination, the inverse of `_decode`; ValueError if it is none."""
    if not isinstance(configuration, dict):
        raise ValueError("no dict")  # noqa: TRY004 - one type for all faults of an input
    if configuration.keys() - {"_name"} != {p.key for p in space.parameters}:
        raise ValueError("other keys than the space's")
    index = 0
    for parameter in space.parameters:
        digit = _digit(parameter, configuration[parameter.key])
        index = index * _count(parameter) + digit
    return index


def _digit(parameter: Parameter, value: object) -> int:
    domain = parameter.domain
    if isinstance(domain, Integer):
        return domain.check(value) - domain.lower
    if isinstance(domain, Uniform):
        assert domain.q is not None
        return round(domain.check(value) / domain.q) - domain.steps()[0]
    assert isinstance(domain, Choice)
    wanted = domain.position(value)
    digit = 0
    for position, option in _distinct(domain):
        if position == wanted:
            return digit + (_encode(option.space, value) if isinstance(option, Branch) else 0)
        digit += _option_size(option)
    raise AssertionError(f"position beyond the options of {parameter.path!r}")
