"""The search space of the benchmarks of speed: ten mixed parameters, and a smooth value."""

from typing import Any

from nni.hpo import RandomTuner

SPACE: dict[str, Any] = {
    **{f"f{i}": {"_type": "uniform", "_value": [-5, 5]} for i in range(3)},
    **{f"l{i}": {"_type": "loguniform", "_value": [1e-5, 1]} for i in range(3)},
    "i0": {"_type": "randint", "_value": [1, 20]},
    "i1": {"_type": "randint", "_value": [0, 100]},
    "c0": {"_type": "choice", "_value": ["a", "b", "c", "d"]},
    "c1": {"_type": "choice", "_value": ["x", "y"]},
}


def drawn_points(count: int, seed: int) -> list[dict[str, Any]]:
    """Return random configurations."""
    tuner = RandomTuner(seed=seed)
    tuner.update_search_space(SPACE)
    return [tuner.generate_parameters(index) for index in range(count)]


def value_of(point: dict[str, Any]) -> float:
    """Return the result of a configuration."""
    return float(sum(point[f"f{i}"] ** 2 for i in range(3)) + point["i0"] + (point["c0"] == "a"))
