"""Construction of a space from an architecture of NNI 2.x, which is converted with a warning."""

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from nni.mutable import Sample, SampleValidationError
from nni.nas.nn.pytorch.parametrized import scope_at_construction
from nni.nas.space.context import current_model, model_context, unfixed_constructors
from nni.nas.utils import convert_sample

_inside: ContextVar[bool] = ContextVar("nni_inside_space", default=False)
"""Whether a space is under construction, so that those constructed now are parts of it."""


def construct_as_sampled(space: Any, construct: Callable[[], None]) -> None:  # noqa: ANN401 - any space
    """Call a space's constructor; for a refused sample of NNI 2.x, convert it and call again.

    A sample that the space refuses is converted from the format of NNI 2.x. If the space takes the
    result, the constructor is called once more, with a warning. Only the outermost space knows all
    labels, so parts of it leave the error to it.

    Args:
        space: the space, whose call is recorded already.
        construct: constructor with its arguments.

    Raises:
        nni.mutable.SampleValidationError: the sample is not contained in the space, in either
            format.
    """
    sample = current_model()
    if sample is None or _inside.get():
        construct()
        return
    token = _inside.set(True)
    try:
        construct()
    except SampleValidationError:
        converted = _converted(space, sample)
        if converted is None:
            raise
        name = type(space).__name__
        warnings.warn(
            f"the sample has the format of NNI 2.x and is converted to construct {name}; convert "
            f"it once by nni.nas.utils.convert_sample(sample, space, 'gen3'), where space is a "
            f"{name} constructed outside of model_context",
            stacklevel=3,  # the call of the class
        )
        with model_context(converted), scope_at_construction(space):
            construct()
    finally:
        _inside.reset(token)


def _converted(space: Any, sample: Sample) -> Sample | None:  # noqa: ANN401 - any space
    """Return a sample of NNI 2.x in the current format; None if the space does not contain it."""
    with unfixed_constructors(), scope_at_construction(space):
        unfixed = space.trace_symbol(*space.trace_args, **space.trace_kwargs)
    converted = convert_sample(sample, unfixed, "gen3")
    return converted if converted != sample and unfixed.contains(converted) else None
