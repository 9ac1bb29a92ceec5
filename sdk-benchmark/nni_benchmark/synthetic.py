"""Synthetic problems of the suite: 2 to 20 dimensions, and all features of spaces."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from nni.hpo.json_value import JsonValue
from nni_benchmark import functions
from nni_benchmark.problem import (
    Configuration,
    Kind,
    Losses,
    Problem,
    choice,
    floats,
    loguniform,
    randint,
    uniform,
    vector,
)

_COSTS: Final = {"a": (3, 1, 4, 1), "b": (5, 9, 2, 6), "c": (5, 3, 5, 8), "d": (9, 7, 9, 3)}
"""Cost of each option of `categories`, per choice."""
_ZDT_REFERENCE: Final = (1.1, 7.0)
_MACHINE_REFERENCE: Final = (3.0, 3.0)
_MACHINE_AREA: Final = 8.804633
"""Hypervolume of the front of `machine`, by enumeration of networks at the best rate."""


def _on_vector(function: Callable[[functions.Vector], float]) -> Callable[[Configuration], Losses]:
    return lambda point: (function(vector(point)),)


def _branin(point: Configuration) -> Losses:
    return (functions.branin(point["x0"], 15 * point["x1"]),)


def _mixed(point: Configuration) -> Losses:
    numbers = sum((point[f"f{i}"] - (1, -2, 3)[i]) ** 2 / 10 for i in range(3))
    rates = sum((math.log10(point[f"l{i}"]) + (1, 3, 4)[i]) ** 2 / 3 for i in range(3))
    integers = ((point["i0"] - 13) / 6) ** 2 + ((point["i1"] - 30) / 30) ** 2
    option = {"a": 2, "b": 0, "c": 1, "d": 3}[point["c0"]]
    together = 1.5 if (point["c1"] == "x") == (point["f0"] > 0) else 0
    return (float(numbers + rates + integers + option + together),)


def _categories(point: Configuration) -> Losses:
    options = [point[f"c{place}"] for place in range(4)]
    cost = sum(_COSTS[option][place] for place, option in enumerate(options)) - 10
    together = {("a", "b"): -2, ("b", "b"): 3}.get((options[0], options[1]), 0)
    hollow = 20 * (point["x1"] - (0.2 if options[2] == "a" else 0.8)) ** 2
    return (cost + together + 10 * (point["x0"] - 0.3) ** 2 + hollow,)


def _nested(point: Configuration) -> Losses:
    branch, base = point["m"], 3 * (point["s"] - 0.6) ** 2
    if branch["_name"] == "flat":
        return (1 + base,)
    targets = {"small": (0.5, 2, (0.2, 0.7)), "large": (0.1, 4, (0.2, 0.7, 0.4, 0.9))}
    floor, steepness, centre = targets[branch["_name"]]
    hollow = sum((branch[f"x{place}"] - aim) ** 2 for place, aim in enumerate(centre))
    return (floor + steepness * hollow + base,)


def _network(point: Configuration) -> float:
    """Return the synthetic error of a network, which decreases with its size."""
    size = math.log2(point["width"] * point["layers"])
    return 0.15 * (11 - size) + 0.2 * (math.log10(point["rate"]) + 2.5) ** 2


def _machine(point: Configuration) -> Losses:
    error = _network(point) + (point["kind"] != "b") * 0.5
    return (error, point["width"] * point["layers"] / 2048 + 0.05 * point["layers"])


_BRANIN_SPACE: Final[dict[str, JsonValue]] = {"x0": uniform(-5, 10), "x1": uniform(0, 1)}
_MIXED_SPACE: Final[dict[str, JsonValue]] = {
    **{f"f{place}": uniform(-5, 5) for place in range(3)},
    **{f"l{place}": loguniform(1e-5, 1) for place in range(3)},
    "i0": randint(1, 20),
    "i1": randint(0, 100),
    "c0": choice("a", "b", "c", "d"),
    "c1": choice("x", "y"),
}
_CATEGORIES_SPACE: Final[dict[str, JsonValue]] = {
    **{f"c{place}": choice("a", "b", "c", "d") for place in range(4)},
    **floats(2, 0, 1),
}
_NESTED_SPACE: Final[dict[str, JsonValue]] = {
    "m": choice(
        {"_name": "flat"},
        {"_name": "small", **floats(2, 0, 1)},
        {"_name": "large", **floats(4, 0, 1)},
    ),
    "s": uniform(0, 1),
}
_NETWORK_SPACE: Final[dict[str, JsonValue]] = {
    "width": randint(4, 513),
    "layers": randint(1, 17),
    "rate": loguniform(1e-5, 1),
}


def _of(
    name: str,
    losses: Callable[[Configuration], Losses],
    space: dict[str, JsonValue],
    least: float,
    *kinds: Kind,
    noise: float = 0.0,
) -> Problem:
    return Problem(name, space, losses, least, frozenset(kinds), noise)


def _continuous() -> tuple[Problem, ...]:
    vectors: tuple[tuple[str, Callable[[functions.Vector], float], int, float, float, float], ...]
    vectors = (
        ("hartmann6", functions.hartmann6, 6, 0, 1, functions.HARTMANN_LEAST),
        ("ackley10", functions.ackley, 10, -5, 10, 0),
        ("rosenbrock5", functions.rosenbrock, 5, -5, 10, 0),
        ("levy8", functions.levy, 8, -10, 10, 0),
        ("styblinski6", functions.styblinski_tang, 6, -5, 5, 0),
        ("rastrigin4", functions.rastrigin, 4, -5.12, 4, 0),
        ("griewank6", functions.griewank, 6, -300, 600, 0),
        ("michalewicz5", functions.michalewicz, 5, 0, math.pi, functions.MICHALEWICZ5_LEAST),
        ("sphere15", lambda x: functions.sphere(x, 0.7), 15, -5, 5, 0),
        ("ackley20", functions.ackley, 20, -5, 10, 0),
    )
    return (
        _of("branin", _branin, _BRANIN_SPACE, functions.BRANIN_LEAST, "continuous"),
        *(
            _of(name, _on_vector(function), floats(count, low, high), least, "continuous")
            for name, function, count, low, high, least in vectors
        ),
    )


def _noisy() -> tuple[Problem, ...]:
    hartmann = _on_vector(functions.hartmann6)
    least = functions.HARTMANN_LEAST
    return (
        _of("branin+noise", _branin, _BRANIN_SPACE, functions.BRANIN_LEAST, "noisy", noise=2.0),
        _of("hartmann6+noise", hartmann, floats(6, 0, 1), least, "noisy", noise=0.2),
    )


def _limited() -> tuple[Problem, ...]:
    """Return two problems with limits: on parameters, and on an outcome (Gardner 2014)."""
    constrained = {**_NETWORK_SPACE, "_constraints": ["width * layers <= 1024"]}
    # Gardner et al., Bayesian Optimization with Inequality Constraints, 2014, section 4.1, second
    # simulation: of sin(x) + y where sin(x) sin(y) <= -0.95, the least is asin(0.95) - 1.
    thin = Problem(
        "thin",
        {"x0": uniform(0, 6), "x1": uniform(0, 6)},
        lambda point: (math.sin(point["x0"]) + point["x1"],),
        math.asin(0.95) - 1,
        frozenset({"limited"}),
        excess=lambda point: math.sin(point["x0"]) * math.sin(point["x1"]) + 0.95,
    )
    return (
        _of("budget", lambda point: (_network(point),), constrained, 0.15, "constrained", "mixed"),
        thin,
    )


def _several() -> tuple[Problem, ...]:
    kinds: frozenset[Kind] = frozenset({"objectives"})
    unit = floats(6, 0, 1)
    # Areas above the known fronts: f2 = 1 - sqrt(f1) and f2 = 1 - f1^2 for f1 in [0, 1].
    strip = (_ZDT_REFERENCE[0] - 1) * _ZDT_REFERENCE[1]
    convex, concave = 7 - 1 + 2 / 3 + strip, 7 - 1 + 1 / 3 + strip
    machine: dict[str, JsonValue] = {**_NETWORK_SPACE, "kind": choice("a", "b", "c")}
    return (
        Problem(
            "zdt1",
            unit,
            lambda point: functions.zdt1(vector(point)),
            -convex,
            kinds,
            reference=_ZDT_REFERENCE,
        ),
        Problem(
            "zdt2",
            unit,
            lambda point: functions.zdt2(vector(point)),
            -concave,
            kinds,
            reference=_ZDT_REFERENCE,
        ),
        Problem("machine", machine, _machine, -_MACHINE_AREA, kinds, reference=_MACHINE_REFERENCE),
    )


def synthetic_problems() -> tuple[Problem, ...]:
    """Return all synthetic problems: continuous, mixed, nested, noisy, limited, several."""
    return (
        *_continuous(),
        _of("mixed10", _mixed, _MIXED_SPACE, 0.0, "mixed"),
        _of("categories", _categories, _CATEGORIES_SPACE, -3.0, "mixed"),
        _of("nested", _nested, _NESTED_SPACE, 0.1, "nested"),
        *_noisy(),
        *_limited(),
        *_several(),
    )
