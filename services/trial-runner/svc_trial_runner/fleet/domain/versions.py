"""Comparison of the versions of NNI on two machines."""

from svc_common.errors import FailedPreconditionError

_COMPARED = 2
"""Leading parts that have to be equal for two machines to understand each other."""


def version_warning(here: str, there: str) -> str:
    """Return a warning if versions differ; empty: equal or unknown; raise if incompatible.

    Args:
        here: version of the installation.
        there: version of the machine that enrols.

    Raises:
        FailedPreconditionError: they are too different to understand each other.
    """
    first, second = _line(here), _line(there)
    if first is None or second is None or here == there:
        return ""
    if first != second:
        raise FailedPreconditionError(
            f"this machine has NNI {there}, and the installation has NNI {here}; install a version "
            f"that begins with {'.'.join(first)} on this machine"
        )
    return f"this machine has NNI {there}, and the installation has NNI {here}"


def _line(version: str) -> tuple[str, ...] | None:
    parts = version.split(".")[:_COMPARED]
    is_whole = len(parts) == _COMPARED and all(part.isascii() and part.isdigit() for part in parts)
    return tuple(parts) if is_whole else None
