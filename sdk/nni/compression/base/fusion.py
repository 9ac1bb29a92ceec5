"""Fused compression: several compressors of one model that share its wrappers and a training."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from torch import nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.wrapper_set import WrapperSet

_GIVEN: Final = ("model", "config_list", "evaluator")


class TrainingMember(ABC):
    """Compressor that takes part in a training with others of the same model.

    In each training `prepare_training` is called first, then `join_training` with the bound
    evaluator, `leave_training` at the end, and `check_training` if there was no error; each of all
    members in turn. By default they do nothing.
    """

    evaluator: Evaluator | None
    """What trains the model; None if nothing does."""
    _earlier: "TrainingMember | None" = None

    @property
    @abstractmethod
    def bound_model(self) -> nn.Module:
        """Return the model that this compressor changes."""

    @property
    @abstractmethod
    def shared_wrappers(self) -> WrapperSet | None:
        """Return the wrappers of the model; None if there are none."""

    def members(self) -> list["TrainingMember"]:
        """Return the compressors that this one was made from, oldest first, and itself last.

        Returns:
            Those that this one was made from, and this one as the last.
        """
        return [*(self._earlier.members() if self._earlier is not None else ()), self]

    def prepare_training(self) -> None:  # noqa: B027 - most need nothing
        """Prepare a training, before a model is bound; by default do nothing."""

    def join_training(self, evaluator: Evaluator) -> None:  # noqa: B027
        """Add this compressor's work to the evaluator's training; by default do nothing.

        Args:
            evaluator: has the model.
        """

    def leave_training(self) -> None:  # noqa: B027
        """Remove the hooks of a training, also after an error; by default do nothing."""

    def check_training(self) -> None:  # noqa: B027
        """Raise RuntimeError if a training was too short; by default do nothing."""


def train_together(
    members: Sequence[TrainingMember],
    evaluator: Evaluator,
    model: nn.Module,
    max_steps: int | None,
    max_epochs: int | None,
) -> None:
    """Train a model once while compressors take part; remove their additions, check each one.

    Args:
        members: the compressors, the first one first.
        evaluator: trains the model.
        model: their model, wrapped.
        max_steps: number of optimizer steps; None for no limit.
        max_epochs: number of epochs; None for no limit.
    """
    for member in members:
        member.prepare_training()
    evaluator.bind_model(model)
    try:
        for member in members:
            member.join_training(evaluator)
        evaluator.train(max_steps, max_epochs)
    finally:
        for member in members:
            member.leave_training()
        evaluator.unbind_model()
    for member in members:
        member.check_training()


def fused_arguments(
    made: type, evaluator: Evaluator | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Map arguments after `new_config_list` to names; `evaluator` defaults to the given one.

    Args:
        made: class of the compressor.
        evaluator: evaluator of the compressor that it is made from, unless `kwargs` has one.
        args: positional arguments, of which none is the evaluator.
        kwargs: named arguments.

    Raises:
        TypeError: there are too many arguments, or one is given twice.

    Examples:
        >>> from nni.compression.pruning import L1NormPruner
        >>> fused_arguments(L1NormPruner, None, ["global"], {})
        {'evaluator': None, 'mode': 'global'}
    """
    parameters = inspect.signature(made).parameters
    names = [
        name
        for name, one in parameters.items()
        if name not in _GIVEN and one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    if len(args) > len(names):
        raise TypeError(
            f"{made.__name__}.from_compressor takes {', '.join(names) or 'nothing'} after "
            f"new_config_list, got {len(args)} positional arguments"
        )
    found: dict[str, Any] = {"evaluator": evaluator} if "evaluator" in parameters else {}
    for name, value in zip(names, args, strict=False):
        if name in kwargs:
            raise TypeError(f"{made.__name__}.from_compressor got {name} twice")
        found[name] = value
    return {**found, **kwargs}
