"""Tables of recorded learning curves over a grid of configurations, with the time of a step.

A table replaces a training script that is too slow:
`nni.hpo.simulation.simulator` runs whole experiments on one in milliseconds. It is made
once, by `tabulate`, and saved as JSON.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import OptimizeMode, checked_optimize_mode
from nni.hpo.space.domains import same_value
from nni.hpo.space.parser import parse_space

FORM: Final = 1
"""Version of the file format."""
_SPACE_KEYS: Final = ("_type", "_value")
_LOGARITHMIC: Final = frozenset({"loguniform", "qloguniform", "lognormal", "qlognormal"})
_SECONDS_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class GridAxis:
    """Hyperparameter of the grid, with its measured values."""

    name: str
    type: str
    """A `_type` of the search space language."""
    range: tuple[JsonValue, ...]
    """`_value` of the hyperparameter in the search space."""
    values: tuple[JsonValue, ...]
    """Measured values; numbers in ascending order."""

    def index(self, value: object) -> int:
        """Return the index of the nearest measured number or equal option; ValueError for others.

        Of two numbers that are equally near, it is the lower one.

        Raises:
            ValueError: the value is none of the options, or no number.
        """
        if self.type == "choice":
            for place, option in enumerate(self.values):
                if same_value(option, value):
                    return place
            raise ValueError(f"{self.name} must be one of {list(self.values)}, got {value!r}")
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise ValueError(f"{self.name} must be a number, got {value!r}")
        points = [self._scaled(point) for point in self.values]
        wanted = self._scaled(value)
        right = bisect_left(points, wanted)
        if right == 0 or right == len(points):
            return min(right, len(points) - 1)
        return right if points[right] - wanted < wanted - points[right - 1] else right - 1

    def _scaled(self, value: Any) -> float:  # noqa: ANN401 - a number, checked by the caller
        if self.type in _LOGARITHMIC:
            return math.log(value) if value > 0 else -math.inf
        return float(value)


@dataclass(frozen=True, slots=True)
class Curve:
    """Learning curve of one configuration: metric after each step, mean duration of a step."""

    values: tuple[float, ...]
    """Metric after each step; NaN after divergence."""
    step_s: float
    """Mean duration of a step."""


@dataclass(frozen=True, slots=True)
class CurveTable:
    """Learning curves over a full grid of configurations; made by `tabulate`.

    Raises:
        ValueError: axes and curves do not match.

    Examples:
        >>> from nni.hpo import CurveTable, tabulate
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> table = tabulate(space, {}, lambda p: [0.0, p["x"]], clock_s=lambda: 0.0)
        >>> CurveTable.from_json(table.to_json()) == table
        True
        >>> table.curve({"x": 2}).values, table.best_value
        ((0.0, 2), 2)
    """

    axes: tuple[GridAxis, ...]
    """Hyperparameters of the grid."""
    curves: tuple[Curve, ...]
    """Curves by grid point; the last axis varies fastest."""
    optimize_mode: OptimizeMode = "maximize"
    """Direction in which the metric improves."""
    step: str = "epoch"
    """Name of a step."""
    about: str = ""
    """Origin of the table."""
    _strides: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_optimize_mode(self.optimize_mode)
        parse_space(self.search_space, algorithm="a table of curves", nested=False)
        sizes = [len(axis.values) for axis in self.axes]
        count = math.prod(sizes)
        if not sizes or count == 0 or count != len(self.curves):
            raise ValueError(f"curves must be {count}, one a grid point, got {len(self.curves)}")
        if len({len(curve.values) for curve in self.curves}) != 1 or not self.curves[0].values:
            raise ValueError("all curves must have the same number of steps, at least one")
        strides = tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))
        object.__setattr__(self, "_strides", strides)

    @property
    def search_space(self) -> dict[str, JsonValue]:
        """Search space of the table's axes, as JSON."""
        return {axis.name: {"_type": axis.type, "_value": list(axis.range)} for axis in self.axes}

    @property
    def steps(self) -> int:
        """Number of steps of every curve."""
        return len(self.curves[0].values)

    @property
    def best_value(self) -> float:
        """Best value at the end of a curve: the optimum of a search on this table."""
        ends = [curve.values[-1] for curve in self.curves if math.isfinite(curve.values[-1])]
        return max(ends) if self.optimize_mode == "maximize" else min(ends)

    def curve(self, parameters: Mapping[str, JsonValue]) -> Curve:
        """Return the curve of the nearest grid point; ValueError if a value is missing or wrong.

        Names that are no axis, such as `TRIAL_BUDGET`, are ignored.

        Args:
            parameters: the configuration, with a value per axis. Names that are no axis, such as
                `TRIAL_BUDGET`, are ignored.

        Returns:
            The measured curve of the nearest grid point, by the scale of each axis.

        Raises:
            ValueError: a hyperparameter is missing, or its value has a wrong type.
        """
        place = 0
        for axis, stride in zip(self.axes, self._strides, strict=True):
            if axis.name not in parameters:
                raise ValueError(f"{axis.name} must be given, got {sorted(parameters)}")
            place += stride * axis.index(parameters[axis.name])
        return self.curves[place]

    def to_json(self) -> str:
        """Return the table as JSON text, a line per curve, NaN as null.

        Returns:
            One line per curve; NaN is written as null, times have microseconds.
        """
        head = {
            "form": FORM,
            "about": self.about,
            "optimize_mode": self.optimize_mode,
            "step": self.step,
            "axes": {
                axis.name: {
                    "_type": axis.type,
                    "_value": list(axis.range),
                    "values": list(axis.values),
                }
                for axis in self.axes
            },
            "step_s": [round(curve.step_s, _SECONDS_DIGITS) for curve in self.curves],
        }
        rows = [
            json.dumps([None if math.isnan(value) else value for value in curve.values])
            for curve in self.curves
        ]
        return json.dumps(head, indent=1)[:-2] + ',\n "curves": [\n' + ",\n".join(rows) + "\n]}\n"

    @classmethod
    def from_json(cls, text: str) -> CurveTable:
        """Parse a table from JSON text; raise ValueError for any other text.

        Args:
            text: what `to_json` returned.

        Returns:
            The table.

        Raises:
            ValueError: the text is no table, or of a later version.
        """
        try:
            content = json.loads(text)
            if content["form"] > FORM:
                raise ValueError(f"it has form {content['form']}, known are those up to {FORM}")  # noqa: TRY301 - mapped with the other faults
            axes = tuple(
                GridAxis(name, axis["_type"], tuple(axis["_value"]), tuple(axis["values"]))
                for name, axis in content["axes"].items()
            )
            curves = tuple(
                Curve(tuple(math.nan if value is None else float(value) for value in row), step_s)
                for row, step_s in zip(content["curves"], content["step_s"], strict=True)
            )
            return cls(axes, curves, content["optimize_mode"], content["step"], content["about"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"the text is no table of curves: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> CurveTable:
        """Read a table from a file that `save` wrote; ValueError for other content.

        Args:
            path: a file that `save` has written.

        Returns:
            The table.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is no table.
        """
        return cls.from_json(Path(path).read_text("utf-8"))

    def save(self, path: str | Path) -> None:
        """Write the table to a file, replacing it.

        Args:
            path: the file, JSON in UTF-8.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).write_text(self.to_json(), "utf-8")


def tabulate(
    search_space: Mapping[str, Mapping[str, Any]],
    grid: Mapping[str, Sequence[JsonValue]],
    train: Callable[[dict[str, JsonValue]], Iterable[float]],
    *,
    optimize_mode: Literal["maximize", "minimize"] = "maximize",
    step: str = "epoch",
    about: str = "",
    digits: int = 5,
    clock_s: Callable[[], float] = time.perf_counter,
) -> CurveTable:
    """Train every configuration of a grid and return the table of curves.

    Args:
        search_space: the space; options of a `choice` must be plain values.
        grid: values to measure per hyperparameter other than a `choice`, of which all options are
            measured.
        train: function of a configuration that yields the metric after each step.
        optimize_mode: `maximize` or `minimize`.
        step: name of a step.
        about: origin of the table.
        digits: decimal places of the metric.
        clock_s: clock for the duration of steps; `time.process_time` on a busy machine.

    Returns:
        The table, one curve per point of the grid.

    Raises:
        ValueError: grid and space do not match, or curves differ in length.

    Examples:
        >>> from nni.hpo import tabulate
        >>> space = {"rate": {"_type": "loguniform", "_value": [0.01, 1]}}
        >>> table = tabulate(space, {"rate": [0.01, 0.1, 1]}, lambda p: [p["rate"], 2 * p["rate"]])
        >>> table.steps, table.curve({"rate": 0.2}).values
        (2, (0.1, 0.2))
    """
    axes = tuple(_axis(name, search_space[name], grid.get(name)) for name in search_space)
    curves = []
    for point in itertools.product(*(axis.values for axis in axes)):
        names = [axis.name for axis in axes]
        began_s = clock_s()
        values = [round(value, digits) for value in train(dict(zip(names, point, strict=True)))]
        step_s = (clock_s() - began_s) / max(1, len(values))
        curves.append(Curve(tuple(values), step_s))
    return CurveTable(axes, tuple(curves), optimize_mode, step, about)


def _axis(name: str, entry: Mapping[str, Any], values: Sequence[JsonValue] | None) -> GridAxis:
    kind, range_ = (entry[key] for key in _SPACE_KEYS)
    if kind == "choice":
        return GridAxis(name, kind, tuple(range_), tuple(range_))
    if not values:
        raise ValueError(f"grid must name values of {name}, which is no choice")
    return GridAxis(name, kind, tuple(range_), tuple(sorted(values, key=_number)))


def _number(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"grid must hold numbers for what is no choice, got {value!r}")  # noqa: TRY004 - one type for all faults of an input
    return value
