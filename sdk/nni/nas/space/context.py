"""Context in which constructors build fixed networks: `model_context`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from nni.mutable import Sample, frozen_context

__all__ = ["current_model", "model_context"]

_current: ContextVar[Sample | None] = ContextVar("nni_fixed_sample", default=None)


@contextmanager
def model_context(sample: Sample) -> Iterator[None]:
    """Make constructors of model spaces build the network of a sample, until the context ends.

    A space that is constructed inside is a plain module: it has no mutables, and candidates that
    the sample does not choose are not part of it. A space constructed before is unaffected; use
    its `freeze`. Labels that no mutable has are ignored: those of an evaluator may be among them.

    A `ModelSpace` that the sample does not fit takes it in the format of NNI 2.x, with a warning;
    `nni.nas.utils.convert_sample` converts it for good.

    Args:
        sample: value of each label.

    Yields:
        Nothing.

    Raises:
        TypeError: `sample` is no dict.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice
        >>> with model_context({"activation": 1}):
        ...     layer = LayerChoice([nn.ReLU(), nn.Sigmoid()], label="activation")
        >>> layer
        Sigmoid()
    """
    if not isinstance(sample, Mapping):
        raise TypeError(
            f"sample must be a dict of labels and values, got {type(sample).__name__}: read a "
            "file by json.load or nni.load first"
        )
    fixed = dict(sample)
    token = _current.set(fixed)
    try:
        with frozen_context(fixed):
            yield
    finally:
        _current.reset(token)


@contextmanager
def unfixed_constructors() -> Iterator[None]:
    """Within a block, make constructors build spaces although in a `model_context`.

    Values of the sample are still those of `nni.mutable.ensure_frozen`.

    Yields:
        Nothing.
    """
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def current_model() -> Sample | None:
    """Return a copy of the sample of the innermost `model_context`; None outside of any.

    Returns:
        The sample, a copy; None outside of any context.

    Examples:
        >>> current_model() is None
        True
        >>> with model_context({"kernel": 3}):
        ...     current_model()
        {'kernel': 3}
    """
    fixed = _current.get()
    return None if fixed is None else dict(fixed)
