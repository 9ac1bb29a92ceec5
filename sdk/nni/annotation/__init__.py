"""Annotations: hyperparameters as strings in a script that also runs without NNI.

`convert` copies a folder of code, puts tuned values where annotations ask for them, and derives
the search space; `nni.annotation.runtime` is what the converted code calls in a trial. Names are
imported when first used, because every trial of converted code loads this file.
"""

TYPE_CHECKING = False  # `typing` would cost a small trial more than the rest of this package
if TYPE_CHECKING:
    from nni.annotation.conversion import Conversion, convert, derive_search_space
    from nni.annotation.errors import AnnotationError

__all__ = ["AnnotationError", "Conversion", "convert", "derive_search_space"]

_HOMES = {
    "AnnotationError": "nni.annotation.errors",
    "Conversion": "nni.annotation.conversion",
    "convert": "nni.annotation.conversion",
    "derive_search_space": "nni.annotation.conversion",
}


def __getattr__(name: str) -> object:
    """Import and return an exported name on its first use."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the exported names beside the loaded ones."""
    return sorted({*globals(), *__all__})
