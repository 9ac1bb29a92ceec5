"""Activation whose formula is searched: `AutoActivation`."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nni.mutable import label_scope
from nni.nas.hub.pytorch.modules.activations import (
    BINARY,
    UNARY,
    BinaryFunction,
    UnaryFunction,
)
from nni.nas.nn.pytorch import LayerChoice, MutableModule
from nni.nas.nn.pytorch.base import module_label


class AutoActivation(MutableModule):
    """Activation that is composed of searched functions of one and of two tensors.

    The output starts with a function of the input; each unit combines it with another function of
    the input. With `label="act"` the choices are `act/unary_0`, `act/binary_0`, `act/unary_1`, …,
    whose values are names of functions.

    Args:
        unit_num: number of units, from 1.
        unary_candidates: names of functions of one tensor; `None`: all 24.
        binary_candidates: names of functions of two tensors; `None`: all 10.
        label: name of the activation, the scope of the labels above.

    Raises:
        ValueError: `unit_num` is less than 1, or a name is unknown.

    Source: Ramachandran, Zoph and Le, Searching for Activation Functions, 2017, section 2.
    Departures: the parameter beta is one number, not one for each channel; `log(1 + exp(x))` is
    computed so that it does not overflow.

    Examples:
        >>> activation = AutoActivation(label="act")
        >>> list(activation.simplify())
        ['act/unary_0', 'act/unary_1', 'act/binary_0']
        >>> swish = activation.freeze(
        ...     {"act/unary_0": "Identity", "act/unary_1": "Identity", "act/binary_0": "Sigmoid"}
        ... )
        >>> swish(torch.tensor([0.0, 50.0]))
        tensor([ 0., 50.])
    """

    def __init__(
        self,
        unit_num: int = 1,
        unary_candidates: Sequence[str] | None = None,
        binary_candidates: Sequence[str] | None = None,
        *,
        label: str | None = None,
    ) -> None:
        super().__init__()
        if unit_num < 1:
            raise ValueError(f"unit_num must be >= 1, got {unit_num}")
        unary = list(UNARY if unary_candidates is None else unary_candidates)
        binary = list(BINARY if binary_candidates is None else binary_candidates)
        self.label: str = module_label(label, "AutoActivation")
        with label_scope(self.label):
            self.unaries = nn.ModuleList(
                LayerChoice({name: UnaryFunction(name) for name in unary}, label=f"unary_{unit}")
                for unit in range(unit_num + 1)
            )
            self.binaries = nn.ModuleList(
                LayerChoice({name: BinaryFunction(name) for name in binary}, label=f"binary_{unit}")
                for unit in range(unit_num)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return the value of the composed functions, in the shape of the input.

        Args:
            x: of any shape.

        Returns:
            Of the same shape.
        """
        output: Tensor = self.unaries[0](x)
        for unary, binary in zip(self.unaries[1:], self.binaries, strict=True):
            output = binary(torch.stack([output, unary(x)]))
        return output
