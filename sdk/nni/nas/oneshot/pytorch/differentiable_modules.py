"""Super-modules that compute the mixture of all architectures, weighted by probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from nni.mutable import LabeledMutable, MutableExpression
from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, Repeat
from nni.nas.nn.pytorch.inputs import check_inputs
from nni.nas.oneshot.pytorch.alternatives import combinations
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights
from nni.nas.oneshot.pytorch.expectation import joint
from nni.nas.oneshot.pytorch.mixing_cell import MixingCell
from nni.nas.oneshot.pytorch.supernet import (
    Converted,
    HookResult,
    Memo,
    SuperModule,
    converted,
    unchanged,
)


class Mixing(SuperModule):
    """Super-module that refers to the logits of its supernet without owning them."""

    _weights: tuple[ArchitectureWeights]

    @property
    def architecture(self) -> ArchitectureWeights:
        """Architecture weights of the supernet, which are no submodule of this module."""
        return self._weights[0]


class MixingLayerChoice(Mixing, LayerChoice):
    """Layer choice that computes the weighted sum of all candidates, of any arguments."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what candidates take
        """Return the weighted sum of the outputs of the candidates."""
        weights = self.architecture.weights(self.label).unbind()
        with unchanged((args, kwargs), self.label):
            outputs = [candidate(*args, **kwargs) for candidate in self]
        return weighted_sum(weights, outputs)


class MixingInputChoice(Mixing, InputChoice):
    """Input choice that computes the weighted sum of all inputs.

    For `sum` the weights add up to the number that is chosen, for `mean` to 1.
    """

    def forward(self, candidate_inputs: Sequence[Tensor]) -> Any:  # noqa: ANN401 - as the inputs
        """Return the weighted sum of all inputs, times `n_chosen` for the reduction `sum`.

        Args:
            candidate_inputs: all tensors.
        """
        check_inputs(candidate_inputs, self.n_candidates)
        weights = self.architecture.weights(self.label)
        if self.reduction == "sum" and self.n_chosen is not None and self.n_chosen > 1:
            weights = weights * self.n_chosen
        return weighted_sum(weights.unbind(), candidate_inputs)


class MixingRepeat(Mixing, Repeat):
    """Repetition that computes the weighted sum of the outputs at all depths."""

    depths: list[int]
    """Depth at each combination of the labels."""
    leaves: dict[str, LabeledMutable]

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - what blocks take
        """Return the weighted sum of the outputs at all depths; raise if their sizes differ."""
        weights = {label: self.architecture.weights(label) for label in self.leaves}
        chances = joint(weights, self.leaves)
        by_depth: dict[int, Tensor] = {}
        for depth, chance in zip(self.depths, chances.unbind(), strict=True):
            by_depth[depth] = by_depth[depth] + chance if depth in by_depth else chance
        outputs: dict[int, Any] = {}
        for depth, block in enumerate(self.blocks, 1):
            with unchanged(outputs.get(depth - 1), f"depth {self.depth_choice!r}"):
                inputs = block(inputs)
            if depth in by_depth:
                outputs[depth] = inputs
        self._check_sizes(outputs)
        return weighted_sum([by_depth[depth] for depth in outputs], list(outputs.values()))

    def _check_sizes(self, outputs: dict[int, Any]) -> None:
        """Raise TypeError unless the outputs at all depths have equal sizes."""
        least, *others = outputs
        for depth in others:
            if sizes_of(outputs[depth]) != sizes_of(outputs[least]):
                raise TypeError(
                    "blocks of a Repeat with a searched depth must keep the sizes of their input "
                    f"in a differentiable search, got {sizes_of(outputs[least])} at depth {least} "
                    f"and {sizes_of(outputs[depth])} at depth {depth} of {self.depth_choice!r}; "
                    "fix the depth, raise its least value, or use RandomOneShot or ENAS"
                )


def sizes_of(output: Any) -> Any:  # noqa: ANN401 - tensors, or nested tuples of such
    """Return the shape of a tensor, shapes of a tuple or list; any other output as it is.

    Args:
        output: tensor, None, or a tuple or list of such.

    Returns:
        Sizes of a tensor; a tuple of what its parts have; the object itself if it is no tensor.
    """
    if isinstance(output, Tensor):
        return tuple(output.shape)
    if isinstance(output, tuple | list):
        return tuple(map(sizes_of, output))
    return output


def weighted_sum(weights: Sequence[Tensor], outputs: Sequence[Any]) -> Any:  # noqa: ANN401 - tensors, or nested tuples of such
    """Return the weighted sum of tensors, or of the parts of tuples one by one.

    Args:
        weights: 0-dimensional tensors.
        outputs: as many tensors of one shape, or tuples or lists of such.

    Returns:
        Tensor of that shape, or a tuple of such.
    """
    if not isinstance(outputs[0], Tensor):
        return tuple(weighted_sum(weights, parts) for parts in zip(*outputs, strict=True))
    total = weights[0] * outputs[0]
    for weight, output in zip(weights[1:], outputs[1:], strict=True):
        total = total + weight * output
    return total


def weighted(
    kind: type[Converted], module: nn.Module, leaf: LabeledMutable, weights: ArchitectureWeights
) -> Converted:
    """Add the logits of a choice; return the super-module of its primitive, sharing all parts.

    Args:
        kind: class of the super-module.
        module: the primitive.
        leaf: its choice.
        weights: logits of the supernet.

    Returns:
        A new module, which shares all parts.
    """
    weights.add_leaf(leaf)
    return converted(kind, module, _weights=(weights,))


def mixing_hook(module: nn.Module, name: str, memo: Memo, arguments: dict[str, Any]) -> HookResult:
    """Return the super-module of a primitive that mixes all architectures; None for other modules.

    Args:
        module: any module.
        name: its path from the root.
        memo: not used.
        arguments: `architecture`, the `ArchitectureWeights`.

    Returns:
        The super-module; None for modules that are no primitives.

    Raises:
        TypeError: the primitive cannot be mixed.
    """
    del memo
    weights: ArchitectureWeights = arguments["architecture"]
    match module:
        case SuperModule():
            return None
        case LayerChoice():
            return weighted(MixingLayerChoice, module, module.choice, weights)
        case InputChoice():
            check_input_choice(module, name)
            return weighted(MixingInputChoice, module, module.choice, weights)
        case Repeat() if isinstance(module.depth_choice, MutableExpression):
            return _mixing_repeat(module, module.depth_choice, name, weights)
        case Cell():
            return MixingCell(module, weights)
    return None


def check_input_choice(module: InputChoice, name: str) -> None:
    """Raise TypeError unless the reduction is `sum` or `mean`; warn if any number may be chosen.

    Args:
        module: choice of inputs.
        name: its path from the root.

    Raises:
        TypeError: the reduction is `concat` or `none`.
    """
    if module.reduction not in {"sum", "mean"}:
        raise TypeError(
            f"InputChoice at {name!r} must have the reduction 'sum' or 'mean' in a differentiable "
            f"search, got {module.reduction!r}"
        )
    if module.n_chosen is None:
        warnings.warn(
            f"InputChoice at {name!r} chooses any number of inputs; a differentiable search "
            "exports one",
            stacklevel=2,
        )


def _mixing_repeat(
    module: Repeat, depth: MutableExpression, name: str, weights: ArchitectureWeights
) -> MixingRepeat:
    if module.min_depth < 1:
        raise TypeError(
            f"Repeat at {name!r} must have a depth of at least 1 in a differentiable search, got "
            f"{module.min_depth}"
        )
    leaves = depth.simplify()
    for leaf in leaves.values():
        weights.add_leaf(leaf)
    depths = [int(depth.freeze(sample)) for sample in combinations(leaves.values())]
    return converted(MixingRepeat, module, _weights=(weights,), depths=depths, leaves=dict(leaves))
