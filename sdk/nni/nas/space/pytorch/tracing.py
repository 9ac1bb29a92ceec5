"""One module as calls: a trace of its `forward` in which the modules inside are opaque."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from torch import fx, nn

from nni.nas.space.graph import IllegalGraphError

_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


@dataclass(frozen=True, slots=True)
class CallShape:
    """Number of positional and names of other arguments of a call; the rest have their defaults."""

    n_positional: int
    """Number of positional arguments."""
    names: tuple[str, ...] = ()
    """Names of the others."""


class TrainingFlag(int):
    """Placeholder of `self.training` in a trace, which is found again in arguments of calls."""

    def __bool__(self) -> bool:
        raise fx.proxy.TraceError("forward branches on self.training")


def trace_calls(module: nn.Module, name: str, shape: CallShape | None) -> fx.Graph:
    """Return the calls of `forward`, without those inside modules; raise if it cannot be traced.

    Args:
        module: module to trace.
        name: its name, for errors.
        shape: arguments that it is called with; None: those without defaults.

    Raises:
        IllegalGraphError: `forward` cannot be traced.
    """
    tracer = _OneLevelTracer(shape)
    with _training_flag(module):
        try:
            graph: fx.Graph = tracer.trace(module)
        except Exception as error:
            raise IllegalGraphError(
                name,
                f"forward of {type(module).__name__} cannot be written as a graph ({error}); "
                "decorate the class with nni.nas.utils.basic_unit, so that it is one node, or use "
                "the simplified format",
            ) from error
    return graph


class _OneLevelTracer(fx.Tracer):
    """Tracer to which all modules inside are leaves."""

    def __init__(self, shape: CallShape | None) -> None:
        super().__init__()
        self._shape = shape

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return True: no module inside is traced."""
        del m, module_qualified_name
        return True

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,  # noqa: FBT001 - as in the base class
        concrete_args: Any = None,  # noqa: ANN401 - as in the base class
    ) -> tuple[Any, list[Any]]:
        """Return the function, and a placeholder for each argument that is passed."""
        del is_module, concrete_args
        signature = inspect.signature(inspect.unwrap(root_fn))
        names = () if self._shape is None else self._shape.names
        args = [self._placeholder(name) for name in self._positional(signature)]
        named = {name: self._placeholder(name) for name in names}
        return (lambda *values: root_fn(*values, **named)), [self.root, *args]

    def _placeholder(self, name: str) -> fx.Proxy:
        return self.create_proxy("placeholder", name, (), {})

    def _positional(self, signature: inspect.Signature) -> Iterator[str]:
        """Yield the names of the arguments that are passed by position."""
        parameters = list(signature.parameters.values())[1:]
        positional = [one for one in parameters if one.kind in _POSITIONAL]
        if self._shape is None:
            yield from (one.name for one in positional if one.default is one.empty)
            return
        yield from (one.name for one in positional[: self._shape.n_positional])
        extra = self._shape.n_positional - len(positional)
        rest = next((one for one in parameters if one.kind is one.VAR_POSITIONAL), None)
        if rest is not None:
            yield from (f"{rest.name}_{index}" for index in range(extra))


@contextmanager
def _training_flag(module: nn.Module) -> Iterator[None]:
    attributes = vars(module)
    before = attributes["training"]
    attributes["training"] = TrainingFlag(before)
    try:
        yield
    finally:
        attributes["training"] = before
