"""Runs of a model with an example input."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Put a model into eval mode for a `with` block; each module gets its mode back.

    Args:
        model: any module.

    Yields:
        Nothing.

    Examples:
        >>> model = nn.Dropout()
        >>> with eval_mode(model):
        ...     model.training
        False
        >>> model.training
        True
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def call_model(model: nn.Module, inputs: object) -> object:
    """Return a model's output for inputs: a dict as keywords, a tuple or list as positions.

    Args:
        model: any module.
        inputs: a tuple or list of positional arguments, a dict of named ones, or the only one.

    Examples:
        >>> call_model(nn.Identity(), {"input": 1}), call_model(nn.Identity(), 1)
        (1, 1)
    """
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)
