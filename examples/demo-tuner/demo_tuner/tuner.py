"""The tuner."""

import random
from typing import Any

from nni.tuner import Tuner


class DemoTuner(Tuner):
    """Takes a step from the best point so far, half as large each time that it fails.

    Args:
        optimize_mode: `maximize` or `minimize`.
    """

    def __init__(self, optimize_mode: str = "maximize") -> None:
        self._sign = 1 if optimize_mode == "minimize" else -1
        self._space: dict[str, Any] = {}
        self._best: tuple[float, dict[str, float]] | None = None
        self._size = 0.5

    def update_search_space(self, search_space: Any) -> None:
        """Take a space of `uniform` parameters."""
        for name, entry in search_space.items():
            if entry["_type"] != "uniform":
                raise ValueError(f"DemoTuner knows uniform only, got {entry['_type']!r} for {name}")
        self._space = search_space

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, float]:
        """Return a point near the best one; the first in the middle of the space."""
        point = {}
        for name, entry in self._space.items():
            low, high = entry["_value"]
            if self._best is None:
                point[name] = random.uniform(low, high)
            else:
                step = random.uniform(-1, 1) * self._size * (high - low)
                point[name] = min(max(self._best[1][name] + step, low), high)
        return point

    def receive_trial_result(
        self, parameter_id: int, parameters: dict[str, float], value: Any, **kwargs: Any
    ) -> None:
        """Move to a better point, or look closer."""
        number = value["default"] if isinstance(value, dict) else value
        loss = self._sign * number
        if self._best is None or loss < self._best[0]:
            self._best = (loss, parameters)
        else:
            self._size = max(self._size / 2, 0.01)
