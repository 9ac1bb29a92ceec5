"""Warnings of the names of NNI 2.x, once for each name."""

import functools
import warnings


@functools.cache
def warn_once(name: str, newer: str) -> None:
    """Warn that a name is one of NNI 2.x, the first time that it is used.

    Args:
        name: its import path, without `nni.retiarii.`.
        newer: what to write instead.
    """
    warnings.warn(
        f"nni.retiarii.{name} has the arguments of NNI 2.x; the newer name is {newer}",
        DeprecationWarning,
        stacklevel=3,
    )
