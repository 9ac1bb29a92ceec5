"""Freezing of long-lived objects, which keeps the pauses of Python's garbage collector short.

A manager holds a million small objects, hardly any of them in a cycle, and a full collection
traverses all of them: a pause of 200 ms, repeated each time their number grows by a quarter.
Therefore objects that survive a full collection are frozen and not traversed again, except in rare
complete passes: the first after two collections, then after four, eight and so on, so that all
complete passes together cost about as much as the last one. Reference counting frees frozen objects
as before; only garbage in a cycle of frozen objects waits for the next complete pass.
"""

import gc
from typing import Any, Final

MAX_PASS_INTERVAL: Final = 1024
"""Most full collections between two complete passes; there may be one every few seconds."""


class GcFreezer:
    """Garbage collector callback: freezes survivors; unfreezes all before rare complete passes."""

    def __init__(self) -> None:
        self._remaining = self._interval = 2

    def start(self) -> None:
        """Freeze all existing objects, and from now on those that survive most full collections."""
        gc.freeze()
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """Unfreeze all objects and stop freezing."""
        gc.callbacks.remove(self._on_collection)
        gc.unfreeze()

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if phase != "stop" or info["generation"] != 2:  # noqa: PLR2004 - the oldest
            return
        if self._remaining > 0:
            self._remaining -= 1
            gc.freeze()
        else:  # the next collection traverses everything; the one after it freezes again
            self._interval = min(2 * self._interval, MAX_PASS_INTERVAL)
            self._remaining = self._interval
            gc.unfreeze()
