"""Limits of a start: without progress of the children, and in all."""

from collections.abc import Mapping
from typing import Final

_CPU_STEP_S: Final = 0.5
"""CPU time of the children that counts as progress.

A service that waits for another one wakes now and then, and uses less within the limit. Imports
use more, even with a hundredth of a core.
"""


class StartProgress:
    """Progress of a start: children that became ready, or CPU time that starting ones have used.

    Args:
        still_limit_s: longest time without progress.
        total_limit_s: longest time in all.
        step_limit_s: longest time between two looks that counts as without progress: the supervisor
            may have been stopped, or starved, itself.
        now_s: time of the start.
    """

    def __init__(
        self, still_limit_s: float, total_limit_s: float, step_limit_s: float, now_s: float
    ) -> None:
        self._still_limit_s = still_limit_s
        self._total_limit_s = total_limit_s
        self._step_limit_s = step_limit_s
        self._started_s = self._looked_s = now_s
        self._still_s = 0.0
        self._ready = 0
        self._cpu_s: Mapping[int, float] = {}

    def is_over(self, now_s: float, ready: int, cpu_s: Mapping[int, float]) -> bool:
        """Note a look at the children; return whether the start is to be given up.

        Args:
            now_s: time of the look.
            ready: number of children that are ready.
            cpu_s: CPU time of each child that is not ready, by process id.
        """
        used_s = sum(max(0.0, used - self._cpu_s.get(pid, 0.0)) for pid, used in cpu_s.items())
        if ready > self._ready or used_s >= _CPU_STEP_S:
            self._still_s, self._ready, self._cpu_s = 0.0, ready, dict(cpu_s)
        else:
            self._still_s += min(now_s - self._looked_s, self._step_limit_s)
        self._looked_s = now_s
        total_s = now_s - self._started_s
        return self._still_s >= self._still_limit_s or total_s >= self._total_limit_s
