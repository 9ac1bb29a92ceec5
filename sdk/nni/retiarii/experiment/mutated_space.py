"""Space of a network without choices, and of mutators."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from nni.nas.space import Mutator, MutatorSequence
from nni.nas.space.pytorch import PytorchGraphModelSpace


def mutated_space(
    base_model: nn.Module, applied_mutators: Iterable[Mutator]
) -> PytorchGraphModelSpace:
    """Return a graph space of a network and mutators; raise if the network has choices.

    Args:
        base_model: network without choices.
        applied_mutators: mutators, in the order of their application.

    Raises:
        RuntimeError: the network has choices; NNI 2.x did not allow both, `nni.nas` does.
    """
    space = PytorchGraphModelSpace.from_model(base_model)
    if len(space.mutators):
        raise RuntimeError(
            "choices inside the network and applied_mutators must not be used together; use "
            "PytorchGraphModelSpace.from_model(network, mutators=...) of nni.nas.space.pytorch"
        )
    space.mutators = MutatorSequence(applied_mutators)
    return space
