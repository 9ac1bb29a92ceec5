"""One thread for linear algebra while an algorithm of this process works.

Its matrices are small: several threads make a busy machine wait for each other, up to seconds for
one suggestion, and give other last digits than one. The host of an experiment's algorithm has the
same limit in its environment.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which numpy's linear algebra takes one thread; nothing without numpy."""
    if "numpy" not in sys.modules:
        return nullcontext()
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:  # noqa: ANN401 - of a package without types
    """Return what limits the libraries that are loaded now; None if it is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
