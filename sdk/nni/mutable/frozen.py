"""Contexts whose sample fixes the mutables that are made inside."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, ParamSpec, TypeVar

from nni.mutable.base import Mutable, Sample
from nni.mutable.errors import SampleMissingError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_contexts: ContextVar[tuple[Sample, ...]] = ContextVar("_contexts", default=())


class frozen_context:  # noqa: N801 - name of the specification
    """Context manager whose sample is the default of `ensure_frozen` inside.

    Contexts may be nested: the inner one has precedence, label by label. They belong to a thread or
    an asynchronous task.

    Args:
        sample: label to value; it is copied. `None`: empty, to be filled with `update`.

    Examples:
        >>> from nni.mutable import Categorical
        >>> width = Categorical([16, 32], label="width")
        >>> with frozen_context({"width": 32}):
        ...     print(ensure_frozen(width), frozen_context.current())
        32 {'width': 32}
        >>> frozen_context.current() is None
        True
    """

    def __init__(self, sample: Sample | None = None) -> None:
        self._sample = dict(sample or {})
        self._tokens: list[Token[tuple[Sample, ...]]] = []

    @staticmethod
    def current() -> Sample | None:
        """Return a new sample of all contexts, in which inner values win; `None` outside any.

        Returns:
            A new sample; `None` outside any context.
        """
        contexts = _contexts.get()
        if not contexts:
            return None
        merged: Sample = {}
        for context in contexts:
            merged.update(context)
        return merged

    @staticmethod
    def update(sample: Mapping[str, Any]) -> None:
        """Add values to the innermost context; raise RuntimeError outside any.

        Args:
            sample: label to value.

        Raises:
            RuntimeError: there is no context.
        """
        contexts = _contexts.get()
        if not contexts:
            raise RuntimeError("frozen_context.update must be called inside a frozen_context")
        contexts[-1].update(sample)

    @staticmethod
    @contextmanager
    def bypass() -> Iterator[None]:
        """Hide all contexts inside the block, as if there were none.

        Yields:
            Once, inside.
        """
        token = _contexts.set(())
        try:
            yield
        finally:
            _contexts.reset(token)

    def __enter__(self) -> Sample:
        self._tokens.append(_contexts.set((*_contexts.get(), self._sample)))
        return self._sample

    def __exit__(self, *_: object) -> None:
        _contexts.reset(self._tokens.pop())


def ensure_frozen(
    mutable: Any,  # noqa: ANN401 - mutable or not
    *,
    strict: bool = True,
    sample: Sample | None = None,
    retries: int = 1000,
) -> Any:  # noqa: ANN401 - the user's value
    """Return a mutable's value for a sample or the current context; anything else as it is.

    Args:
        mutable: mutable or plain value.
        strict: whether a sample must be there.
        sample: label to value; `None`: that of the current `frozen_context`.
        retries: without a sample, and not strict: random samples to try if the default is invalid.

    Returns:
        The concrete value.

    Raises:
        RuntimeError: there is no sample, and `strict`.
        SampleValidationError: the sample is not contained in the mutable.

    Examples:
        >>> from nni.mutable import Categorical
        >>> ensure_frozen(3), ensure_frozen(Categorical([1, 2], label="a"), sample={"a": 2})
        (3, 2)
    """
    if not isinstance(mutable, Mutable):
        return mutable
    if sample is not None:
        return mutable.freeze(sample)
    current = frozen_context.current()
    if current is None:
        if strict:
            raise RuntimeError(
                f"{mutable!r} must be frozen inside a frozen_context, or with a sample; in the "
                "constructor of a ModelSpace register it with add_mutable first"
            )
        return mutable.robust_default(retries=retries)
    try:
        return mutable.freeze(current)
    except SampleMissingError as error:
        error.add_note(
            "A mutable has a value in the constructor of a ModelSpace once it is registered: call "
            "self.add_mutable(mutable) before its value is needed."
        )
        raise


def frozen_factory(function: Callable[_P, _R], sample: Sample) -> Callable[_P, _R]:
    """Return a callable that calls another one inside the frozen context of a sample.

    Args:
        function: class or function that makes an object, with mutables made inside.
        sample: label to value.

    Returns:
        A callable with the same arguments.

    Examples:
        >>> from nni.mutable import Categorical
        >>> def network():
        ...     return ensure_frozen(Categorical([16, 32], label="width"))
        >>> frozen_factory(network, {"width": 32})()
        32
    """

    def fixed(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with frozen_context(sample):
            return function(*args, **kwargs)

    return fixed
