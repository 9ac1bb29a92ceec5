"""Layers whose weights several sizes share: the contract of the rules for one type of layer.

A *storage* is a layer of the largest size. A smaller size is a slice of its weights. A sampled
architecture runs one slice; a differentiable search runs the mixture of all slices, weighted by
their probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.nas.nn.pytorch.parametrized import placed_like

Arguments = Mapping[str, Any]
"""Keyword arguments of the constructor of a layer."""
Plan = dict[str, Tensor]
"""Constant tensors of a mixture, computed once for a list of options."""


class LayerSlicing(ABC):
    """Rules by which the sizes of one type of layer share weights.

    Subclass it and pass an instance to `register_layer_slicing` to make a type of layer
    searchable in every one-shot strategy. `sliced_state` alone suffices for a layer whose forward
    pass reads nothing but shapes of its weights.

    Args:
        layer: type of the layers; subclasses are included.
        searchable: arguments of the constructor that may differ between options.

    Examples:
        See `docs/nas-oneshot.md`, which registers a layer of a third party.
    """

    layer: ClassVar[type[nn.Module]]
    """Type of the layers; subclasses are included."""
    searchable: ClassVar[tuple[str, ...]]
    """Arguments of the constructor that may differ between options."""

    def storage(self, options: Sequence[Arguments]) -> nn.Module:
        """Return a new layer of the largest sizes, which holds the weights of all options.

        Args:
            options: arguments of each option; equal but for `searchable`.

        Returns:
            The layer, with the largest value of each searchable argument unless overridden.
        """
        largest = {
            name: max(option[name] for option in options)
            for name in self.searchable
            if name in options[0] and not isinstance(options[0][name], str)
        }
        return self.layer(**{**options[0], **largest})

    @abstractmethod
    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return the parameters and buffers of one option, by name in a layer of its size.

        Args:
            storage: layer that `storage` made.
            arguments: arguments of the option.

        Returns:
            Views of the tensors of `storage`, or tensors computed of them.
        """

    def run(self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]) -> Any:  # noqa: ANN401 - attention returns a pair, others a tensor
        """Return the output of a layer with one option's sizes and slices of the shared weights.

        Args:
            storage: layer that `storage` made.
            arguments: arguments of the option.
            inputs: positional inputs of the layer.

        Returns:
            What a layer of this size with the sliced weights returns.
        """
        state = self.sliced_state(storage, arguments)
        return torch.func.functional_call(storage, state, inputs)

    def plan(self, storage: nn.Module, options: Sequence[Arguments]) -> Plan:
        """Return the constant tensors that `mix` needs for these options; by default none.

        Args:
            storage: layer that `storage` made.
            options: arguments of each option.

        Returns:
            Tensors by name; none unless overridden.

        Raises:
            ValueError: outputs of the options cannot be added.
        """
        del storage, options
        return {}

    def mix(
        self,
        storage: nn.Module,
        options: Sequence[Arguments],
        plan: Plan,
        probabilities: Tensor,
        inputs: tuple[Any, ...],
    ) -> Any:  # noqa: ANN401 - attention returns a pair, others a tensor
        """Return the expected output over all options, smaller outputs filled up with zeros.

        Args:
            storage: layer that `storage` made.
            options: arguments of each option.
            plan: what `plan` returned for these options.
            probabilities: `(options,)`, sum 1; gradients flow to it.
            inputs: positional inputs of the layer, of the largest size.

        Returns:
            Output of the largest size.
        """
        del plan
        outputs = [
            self.run(storage, option, tuple(self.narrowed(one, option) for one in inputs))
            for option in options
        ]
        return expected_output(outputs, probabilities)

    def narrowed(self, value: Any, arguments: Arguments) -> Any:  # noqa: ANN401 - inputs may be masks or None
        """Return an input cut to the size of one option; by default unchanged.

        Args:
            value: input of the layer.
            arguments: arguments of the option.

        Returns:
            The input, unchanged unless overridden.
        """
        del arguments
        return value


def expected_output(outputs: Sequence[Any], probabilities: Tensor) -> Any:  # noqa: ANN401 - see above
    """Return the weighted sum of outputs, smaller ones filled up with zeros; tuples by part.

    Args:
        outputs: tensors with equal numbers of dimensions, or tuples of such and None.
        probabilities: `(outputs,)`.

    Returns:
        Sum of the size that contains all; smaller outputs are filled up with zeros at the end.
    """
    first = outputs[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        return tuple(expected_output(part, probabilities) for part in zip(*outputs, strict=True))
    shape = [max(sizes) for sizes in zip(*(one.shape for one in outputs), strict=True)]
    weights = probabilities.unbind()
    total = weights[0] * padded(first, shape)
    for weight, output in zip(weights[1:], outputs[1:], strict=True):
        total = total + weight * padded(output, shape)
    return total


def padded(value: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the tensor filled up with zeros at the end of each dimension.

    Args:
        value: tensor with the dimensions of `shape`, none of them larger.
        shape: wanted sizes.

    Returns:
        Tensor of `shape`; `value` itself if it has it.
    """
    missing = [wanted - size for wanted, size in zip(shape, value.shape, strict=True)]
    if not any(missing):
        return value
    return functional.pad(value, [part for after in reversed(missing) for part in (0, after)])


def leading(sizes: Sequence[int], length: int) -> Tensor:
    """Return for each size which of `length` positions lie in a prefix of that size.

    Args:
        sizes: prefix lengths.
        length: number of positions.

    Returns:
        `(sizes, length)`, float, 1 inside the prefix and 0 behind it.
    """
    positions = torch.arange(length)
    return (positions < torch.tensor(list(sizes)).unsqueeze(1)).float()


def frozen_layer(slicing: LayerSlicing, storage: nn.Module, arguments: Arguments) -> nn.Module:
    """Return an ordinary layer of one size with copies of the sliced weights.

    Args:
        slicing: rules of the type of the layer.
        storage: layer that holds the weights of all sizes.
        arguments: arguments of the size.

    Returns:
        New layer in the mode and with the device and dtype of `storage`.
    """
    layer = placed_like(slicing.layer(**arguments), storage)
    state = slicing.sliced_state(storage, arguments)
    layer.load_state_dict({name: value.detach().clone() for name, value in state.items()})
    for name, parameter in storage.named_parameters():
        if name in state:
            layer.get_parameter(name).requires_grad_(parameter.requires_grad)
    return layer
