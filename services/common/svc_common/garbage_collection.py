"""Short pauses of Python's garbage collector in a process that keeps much for long.

A manager keeps a million small objects, hardly any of them in a cycle, and a full collection looks
at every one: 200 ms in which nothing else happens, again each time there is a quarter more. So what
has survived a full collection is set aside and not looked at again, but for a rare whole pass: the
first after two collections, then after four, eight and so on, so that all whole passes together
cost about as much as the last. Reference counting frees what is set aside as before; only a cycle
that ends there waits for the next whole pass.
"""

import gc
from typing import Any, Final

WHOLE_PASS_AFTER_AT_MOST: Final = 1024
"""Full collections between two whole passes; there may be one each few seconds."""


class GcFreezer:
    """Sets aside what survives a full collection, from `start` to `stop`."""

    def __init__(self) -> None:
        self._until_whole = self._span = 2

    def start(self) -> None:
        """Begin; what is there already is set aside at once."""
        gc.freeze()
        gc.callbacks.append(self._collected)

    def stop(self) -> None:
        """Let the collector look at everything again."""
        gc.callbacks.remove(self._collected)
        gc.unfreeze()

    def _collected(self, phase: str, info: dict[str, Any]) -> None:
        if phase != "stop" or info["generation"] != 2:  # noqa: PLR2004 - the oldest
            return
        if self._until_whole > 0:
            self._until_whole -= 1
            gc.freeze()
        else:  # the next collection looks at everything, and what survives it is set aside
            self._span = min(2 * self._span, WHOLE_PASS_AFTER_AT_MOST)
            self._until_whole = self._span
            gc.unfreeze()
