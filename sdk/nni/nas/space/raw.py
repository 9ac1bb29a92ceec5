"""Format that keeps the live module, weights included: `RawFormatModelSpace`."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.mutable.base import is_labeled
from nni.nas.space.executable import ExecutableModelSpace, ModelEvaluator
from nni.nas.space.status import ModelStatus

__all__ = ["RawFormatModelSpace"]


class RawFormatModelSpace(ExecutableModelSpace):
    """Model space as the live object, for engines in the same process.

    Candidates keep the weights that the space has. Each frozen model is a copy, so that trials do
    not change each other's weights; models of a supernet (`is_supernet` of the space) share them
    on purpose. A frozen model holds sample and space, and builds its network when it is needed.

    Args:
        model_space: mutable, usually a `ModelSpace`; its `freeze` returns the network.
        evaluator: what evaluates networks; None if something else does.

    Attributes:
        model_space: the live space.

    Raises:
        TypeError: `model_space` is no mutable.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice
        >>> space = RawFormatModelSpace(LayerChoice([nn.ReLU(), nn.Linear(1, 1)], label="layer"))
        >>> first, second = space.freeze({"layer": 1}), space.freeze({"layer": 1})
        >>> first.executable_model().weight is second.executable_model().weight
        False
    """

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - any mutable
        evaluator: ModelEvaluator | None = None,
    ) -> None:
        super().__init__(evaluator)
        if not isinstance(model_space, Mutable):
            raise TypeError(
                f"model_space must be a mutable, such as a ModelSpace, got "
                f"{type(model_space).__name__}; derive the network from ModelSpace"
            )
        self.model_space = model_space

    @classmethod
    def from_model(
        cls,
        model_space: Any,  # noqa: ANN401 - any mutable
        evaluator: ModelEvaluator | None = None,
        **options: Any,  # noqa: ANN401 - this format has none
    ) -> Self:
        """Return a space that holds the live object; raise TypeError for options.

        Raises:
            TypeError: an option is given, which this format does not have.
        """
        if options:
            raise TypeError(f"the raw format has no options, got {', '.join(options)}")
        return cls(model_space, evaluator)

    def freeze(self, sample: Sample) -> Self:
        """Return the model of a sample; its network is built when it is needed."""
        self.check_freezable(sample)
        frozen = type(self)(self.model_space, self.frozen_evaluator(sample))
        frozen.sample = dict(sample)
        frozen.status = ModelStatus.Frozen
        return frozen

    def build_model(self) -> Any:  # noqa: ANN401 - a module, usually
        """Return the sample's network, copied unless a supernet's; without sample the space."""
        if self.sample is None:
            return self.model_space
        network = self.model_space.freeze(self.sample)
        if getattr(self.model_space, "is_supernet", False):
            return network
        return _parted(network, self.model_space)

    def model_leaves(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Return the leaves of the live space; cached for the default `is_leaf`."""
        if is_leaf is is_labeled:
            return self.model_space.simplify().values()
        return self.model_space.leaf_mutables(is_leaf)

    def check_model(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample does not fit the live space, None if it does."""
        return self.model_space.check_contains(sample)


def _parted(network: Any, model_space: Any) -> Any:  # noqa: ANN401 - modules, usually
    """Return a network that shares no module and no tensor with the space that it came from.

    Tensors that freezing has made are kept, since copying them is most of the work.
    """
    if not hasattr(network, "modules") or not hasattr(model_space, "modules"):
        return copy.deepcopy(network)
    space_parts = {id(part) for part in _parts(model_space)}
    own = {id(part): part for part in _parts(network) if id(part) not in space_parts}
    if len(own) == sum(1 for _ in _parts(network)):
        return network
    tensors = {key: part for key, part in own.items() if not hasattr(part, "modules")}
    return copy.deepcopy(network, tensors)


def _parts(module: Any) -> Iterator[Any]:  # noqa: ANN401 - modules and tensors
    """Yield all modules, parameters and buffers of a module, each once."""
    yield from module.modules()
    yield from module.parameters()
    yield from module.buffers()
