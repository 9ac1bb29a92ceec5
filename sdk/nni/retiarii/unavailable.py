"""Names of NNI 2.x that are not available, and what to use instead."""

from collections.abc import Callable, Mapping


def refuse(module: str, remedies: Mapping[str, str]) -> Callable[[str], object]:
    """Return the function `__getattr__` of a module, whose errors name what to use instead.

    Args:
        module: import path.
        remedies: what to use instead, by name.

    Returns:
        A function of the name of an attribute, which always raises AttributeError.

    Examples:
        >>> refuse("nni.retiarii", {"Model": "ModelSpace"})("Model")
        Traceback (most recent call last):
        AttributeError: nni.retiarii.Model is not available; use ModelSpace
    """

    def __getattr__(name: str) -> object:  # noqa: N807 - it becomes that of a module
        if name in remedies:
            raise AttributeError(f"{module}.{name} is not available; use {remedies[name]}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
