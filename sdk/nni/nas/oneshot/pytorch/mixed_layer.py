"""Layers with mutable arguments, whose sizes share weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.nas.nn.pytorch import MutableModule, ParametrizedModule
from nni.nas.nn.pytorch.parametrized import placed_like
from nni.nas.oneshot.pytorch.alternatives import combinations
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights, SampledPath
from nni.nas.oneshot.pytorch.expectation import joint
from nni.nas.oneshot.pytorch.layer_slicing import Arguments, LayerSlicing, frozen_layer
from nni.nas.oneshot.pytorch.slicing_registry import slicing_of
from nni.nas.oneshot.pytorch.supernet import HookResult, Memo, SuperModule


class MixedLayer(SuperModule, MutableModule):
    """Layer that holds the weights of all values of its mutable arguments.

    Args:
        layer: layer that it takes the place of.
        slicing: rules of the type of the layer.

    Raises:
        TypeError: an argument is mutable that the rules do not know, or depends on a number; or the
            layer has a forward pass that the rules do not compute.
    """

    def __init__(self, layer: ParametrizedModule, slicing: LayerSlicing) -> None:
        super().__init__()
        _check_forward(layer, slicing)
        self.slicing = slicing
        self.given: dict[str, Any] = dict(layer.trace_kwargs)
        self._check_searchable(type(layer).__name__)
        self.leaves: dict[str, LabeledMutable] = {**layer.simplify()}
        self.options = [self.arguments(sample) for sample in combinations(self.leaves.values())]
        self.storage = placed_like(slicing.storage(self.options), layer)
        self.training = layer.training

    def _check_searchable(self, kind: str) -> None:
        for name, value in self.given.items():
            if isinstance(value, Mutable) and name not in self.slicing.searchable:
                raise TypeError(
                    f"argument {name} of {kind} must be fixed in a supernet, got {value!r}; "
                    f"mutable may be {', '.join(self.slicing.searchable)}"
                )

    def arguments(self, sample: Sample) -> Arguments:
        """Return the arguments of the layer for a sample.

        Args:
            sample: value of each label.
        """
        return {
            name: value.freeze(sample) if isinstance(value, Mutable) else value
            for name, value in self.given.items()
        }

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Return the leaves that the arguments depend on, whatever `is_leaf` returns."""
        del is_leaf
        return list(self.leaves.values())

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return the first error of a sample that fits not all leaves of the arguments, or None."""
        errors = (leaf.check_contains(sample) for leaf in self.leaves.values())
        return next((error for error in errors if error is not None), None)

    def freeze(self, sample: Sample) -> nn.Module:
        """Return an ordinary layer with a copy of the weights of this size."""
        self.validate(sample)
        return frozen_layer(self.slicing, self.storage, self.arguments(sample))


class PathMixedLayer(MixedLayer):
    """Layer that computes, with shared weights, the size of the presently sampled path.

    Args:
        layer: layer that it takes the place of.
        slicing: rules of the type of the layer.
        path: the present sample.
    """

    def __init__(self, layer: ParametrizedModule, slicing: LayerSlicing, path: SampledPath) -> None:
        super().__init__(layer, slicing)
        self.path = path
        self._known: tuple[Sample, Arguments] | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the layer takes
        """Return the output of the layer of the sampled size."""
        inputs = positional(self.slicing.layer, args, kwargs)
        sample = self.path.sample
        known = self._known
        if known is None or known[0] is not sample:
            known = self._known = (sample, self.arguments(sample))
        return self.slicing.run(self.storage, known[1], inputs)


class MixingLayer(MixedLayer):
    """Layer that computes the expected output over all sizes.

    Args:
        layer: layer that it takes the place of.
        slicing: rules of the type of the layer.
        weights: logits of the supernet.

    Raises:
        ValueError: outputs of different sizes cannot be added.
    """

    def __init__(
        self, layer: ParametrizedModule, slicing: LayerSlicing, weights: ArchitectureWeights
    ) -> None:
        super().__init__(layer, slicing)
        for leaf in self.leaves.values():
            weights.add_leaf(leaf)
        self._weights = (weights,)
        parameter = next(self.storage.parameters(), None)
        device = None if parameter is None else parameter.device
        for name, constant in slicing.plan(self.storage, self.options).items():
            self.register_buffer(f"plan_{name}", constant.to(device), persistent=False)

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the layer takes
        """Return the expected output over all sizes."""
        inputs = positional(self.slicing.layer, args, kwargs)
        weights = {label: self._weights[0].weights(label) for label in self.leaves}
        plan: dict[str, Tensor] = {
            name.removeprefix("plan_"): constant
            for name, constant in self._buffers.items()
            if constant is not None
        }
        chances = joint(weights, self.leaves)
        return self.slicing.mix(self.storage, self.options, plan, chances, inputs)


def positional(
    layer: type[nn.Module], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the inputs of a call by position, with defaults between them; raise as the layer does.

    Args:
        layer: type of the layer.
        args: positional inputs.
        kwargs: named inputs.

    Returns:
        The inputs, up to the last one that is given.

    Raises:
        TypeError: the forward pass of the layer does not take these inputs.

    Examples:
        >>> positional(nn.MultiheadAttention, (1, 2, 3), {"need_weights": False})
        (1, 2, 3, None, False)
    """
    if not kwargs:
        return args
    bound = inspect.signature(layer.forward).bind(None, *args, **kwargs)
    bound.apply_defaults()
    names = list(bound.arguments)
    last = max(map(names.index, kwargs.keys() & set(names)), default=0)
    if bound.kwargs:
        raise TypeError(
            f"inputs of {layer.__name__} in a supernet must have a position, got the keywords "
            f"{', '.join(bound.kwargs)}"
        )
    return tuple(bound.arguments.values())[1 : max(last, len(args)) + 1]


def _check_forward(layer: nn.Module, slicing: LayerSlicing) -> None:
    """Raise TypeError if a subclass computes something else than the layer that the rules know."""
    if type(layer).forward is not slicing.layer.forward:
        raise TypeError(
            f"its class overrides forward of {slicing.layer.__name__}, which shared weights would "
            "not compute; call the layer from a module of your own, or register rules for the "
            "class by register_layer_slicing"
        )


def path_layer_hook(
    module: nn.Module, name: str, memo: Memo, arguments: dict[str, Any]
) -> HookResult:
    """Return the layer that computes the sampled size; None for other modules.

    Args:
        module: any module.
        name: its path from the root.
        memo: not used.
        arguments: `path`, the `SampledPath`.
    """
    del memo
    return _mixed(module, name, partial(PathMixedLayer, path=arguments["path"]))


def mixing_layer_hook(
    module: nn.Module, name: str, memo: Memo, arguments: dict[str, Any]
) -> HookResult:
    """Return the layer that computes the mixture of all sizes; None for other modules.

    Args:
        module: any module.
        name: its path from the root.
        memo: not used.
        arguments: `architecture`, the `ArchitectureWeights`.
    """
    del memo
    return _mixed(module, name, partial(MixingLayer, weights=arguments["architecture"]))


def _mixed(
    module: nn.Module, name: str, mix: Callable[[ParametrizedModule, LayerSlicing], MixedLayer]
) -> HookResult:
    """Return a layer that takes the place of one of mutable size; None for other modules."""
    slicing = _slicing_of_mutable(module)
    if slicing is None or not isinstance(module, ParametrizedModule):
        return None
    with _named(module, name):
        return mix(module, slicing)


@contextmanager
def _named(module: nn.Module, name: str) -> Iterator[None]:
    """Turn the errors of a conversion into a TypeError that names the layer."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{type(module).__name__} at {name!r} is not supported in a supernet: {error}"
        ) from error


def _slicing_of_mutable(module: nn.Module) -> LayerSlicing | None:
    """Return the rules of a layer that has mutable arguments; None for other modules."""
    if isinstance(module, SuperModule) or not isinstance(module, ParametrizedModule):
        return None
    return slicing_of(module) if module.mutables else None
