"""Forms of top models: executable models, samples, networks and source code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from nni.nas.space import ExecutableModelSpace


def _code(model: ExecutableModelSpace) -> str:
    to_code: Callable[[], str] | None = getattr(model, "to_code", None)
    if to_code is None:
        raise ValueError(
            "formatter 'code' needs models in the graph format, these are "
            f"{type(model).__name__}; set config.model_format = 'graph' before the search, or use "
            "formatter 'dict' or 'instance'"
        )
    return to_code()


_FORMATTERS: Final[dict[str | None, Callable[[ExecutableModelSpace], Any]]] = {
    None: lambda model: model,
    "code": _code,
    "dict": lambda model: {str(label): value for label, value in (model.sample or {}).items()},
    "instance": lambda model: model.executable_model(),
}


def check_formatter(formatter: str | None) -> None:
    """Raise ValueError unless a formatter is None, `"dict"`, `"instance"` or `"code"`."""
    if formatter not in _FORMATTERS:
        known = ", ".join(repr(one) for one in _FORMATTERS)
        raise ValueError(f"formatter must be one of {known}; got {formatter!r}")


def formatted(models: Sequence[ExecutableModelSpace], formatter: str | None) -> list[Any]:
    """Return models as they are (None), samples, networks, or code; raise if one has no such form.

    Raises:
        ValueError: the formatter is unknown, or a model has no such form.
    """
    check_formatter(formatter)
    return [_FORMATTERS[formatter](model) for model in models]
