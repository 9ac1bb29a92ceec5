"""Super-modules that compute one sampled path, with gradients for the logits of all paths.

Source: Cai, Zhu, Han, ProxylessNAS, 2019, section 3.2 and the form `full_v2` of its code.
Departures: the other paths are computed in the backward pass, so that memory holds one path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.mutable import Categorical
from nni.nas.nn.pytorch import InputChoice, LayerChoice, Repeat
from nni.nas.nn.pytorch.inputs import check_inputs
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights
from nni.nas.oneshot.pytorch.differentiable_modules import Mixing, check_input_choice, weighted
from nni.nas.oneshot.pytorch.supernet import HookResult, Memo, SuperModule, unchanged

Alternative = Callable[[int], Tensor]
"""Function of the position of an alternative that returns its output."""


class GatedWeights(ArchitectureWeights):
    """Weights that are 1 for one sampled alternative and 0 for the others."""

    def relaxed(self, logits: Tensor) -> Tensor:
        """Return a one-hot vector, sampled by the softmax of the logits, without gradients."""
        probabilities = functional.softmax(logits.detach(), -1)
        gate = torch.zeros_like(probabilities)
        gate[torch.multinomial(probabilities, 1)] = 1.0
        return gate

    @property
    def learns(self) -> bool:
        """Whether gradients to the logits are needed at present."""
        return not self._constant and torch.is_grad_enabled()


class Gated(Mixing):
    """Super-module that computes one sampled alternative."""

    def gated(self, label: str, alternative: Alternative) -> Tensor:
        """Return the sampled alternative's output, by a gate that gives the logits gradients.

        Args:
            label: name of the choice.
            alternative: computes an alternative.

        Returns:
            Its output; gradients reach the weights of the alternative, and the logits of all.
        """
        architecture = self.architecture
        assert isinstance(architecture, GatedWeights)
        index = int(architecture.weights(label).argmax())
        output = alternative(index)
        if not isinstance(output, Tensor):
            raise TypeError(
                f"alternatives of {label!r} must return one tensor in this search, got "
                f"{type(output).__name__}; use DARTS or RandomOneShot"
            )
        if not architecture.learns:
            return output
        logits = architecture.logits(label)
        gate: Tensor = _BinaryGate.apply(output, logits, index, alternative)  # type: ignore[no-untyped-call]  # torch declares no types
        return gate


class GatedLayerChoice(Gated, LayerChoice):
    """Layer choice that computes one sampled candidate of positional arguments."""

    def forward(self, *inputs: Any) -> Tensor:  # noqa: ANN401 - what candidates take
        """Return the output of the sampled candidate."""
        return self.gated(self.label, _Recomputed(self.label, list(self), inputs))


class GatedInputChoice(Gated, InputChoice):
    """Input choice that returns one sampled input."""

    def forward(self, candidate_inputs: Sequence[Tensor]) -> Tensor:
        """Return the sampled tensor.

        Args:
            candidate_inputs: all tensors.
        """
        check_inputs(candidate_inputs, self.n_candidates)
        return self.gated(self.label, list(candidate_inputs).__getitem__)


class GatedRepeat(Gated, Repeat):
    """Repetition that computes one sampled number of blocks."""

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - what blocks take
        """Return the output at the sampled depth."""
        choice = self.depth_choice
        assert isinstance(choice, Categorical)
        blocks = list(self.blocks)
        prefixes = [nn.Sequential(*blocks[:depth]) for depth in choice.values]
        return self.gated(choice.label, _Recomputed(choice.label, prefixes, (inputs,)))


class _Recomputed:
    """Callable that computes the alternative of an index anew, from fixed inputs, at each call."""

    def __init__(self, label: str, modules: Sequence[nn.Module], inputs: tuple[Any, ...]) -> None:
        self._label = label
        self._modules = modules
        self._inputs = inputs

    def __call__(self, index: int) -> Tensor:
        with unchanged(self._inputs, self._label):
            output: Tensor = self._modules[index](*self._inputs)
        return output


class _BinaryGate(torch.autograd.Function):
    """Identity of an output, whose backward pass computes the gradient of the logits."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - signature of torch
        output: Tensor,
        logits: Tensor,
        index: int,
        alternative: Alternative,
    ) -> Tensor:
        ctx.save_for_backward(output, logits)
        ctx.index, ctx.alternative = index, alternative
        ctx.cast = _autocast_of(output.device.type)
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:  # noqa: ANN401 - signature of torch
        (gradient,) = gradients
        output, logits = ctx.saved_tensors
        device, enabled, dtype = ctx.cast
        scores = []
        with torch.no_grad(), torch.autocast(device, enabled=enabled, dtype=dtype):
            for index in range(len(logits)):
                value = output if index == ctx.index else ctx.alternative(index)
                scores.append((gradient * value).sum(dtype=logits.dtype))
        gates = torch.stack(scores)
        chances = functional.softmax(logits, -1)
        return gradient, chances * (gates - (chances * gates).sum()), None, None


def _autocast_of(device: str) -> tuple[str, bool, torch.dtype]:
    """Return device, state and type of the automatic mixed precision at present."""
    return device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)


def gated_hook(module: nn.Module, name: str, memo: Memo, arguments: dict[str, Any]) -> HookResult:
    """Return the super-module of a primitive that computes a sampled path; None for others.

    Args:
        module: any module.
        name: its path from the root.
        memo: not used.
        arguments: `architecture`, the `GatedWeights`.

    Returns:
        The super-module; None for modules that are no primitives.

    Raises:
        TypeError: the primitive cannot be gated.
    """
    del memo
    weights: ArchitectureWeights = arguments["architecture"]
    match module:
        case SuperModule():
            return None
        case LayerChoice():
            return weighted(GatedLayerChoice, module, module.choice, weights)
        case InputChoice():
            check_input_choice(module, name)
            if module.n_chosen not in {1, None}:
                raise TypeError(
                    f"InputChoice at {name!r} must have n_chosen=1 for this strategy, got "
                    f"{module.n_chosen}"
                )
            return weighted(GatedInputChoice, module, module.choice, weights)
        case Repeat() if not isinstance(module.depth_choice, int):
            if not isinstance(module.depth_choice, Categorical) or module.min_depth < 1:
                raise TypeError(
                    f"Repeat at {name!r} must have a depth that is one choice among numbers of at "
                    f"least 1 for this strategy, got {module.depth_choice!r}"
                )
            return weighted(GatedRepeat, module, module.depth_choice, weights)
    return None
