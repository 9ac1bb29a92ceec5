"""Conformance suite of model spaces; a subclass builds the space under test.

Import it from this module: `nni.testing` itself does not load torch.
"""

import copy
from typing import Any, ClassVar

import torch
from torch import nn

from nni.common.serializer import dump, load
from nni.mutable import Sample, SampleMissingError
from nni.nas.nn.pytorch import ModelSpace, MutableModule
from nni.nas.space import RawFormatModelSpace, SimplifiedModelSpace, model_context
from nni.testing.space_samples import SpaceConformance

Shapes = dict[str, tuple[int, ...]]


class ModelSpaceConformance(SpaceConformance[ModelSpace]):
    """Tests that every `nni.nas.nn.pytorch.ModelSpace` must pass; subclass it in a module of tests.

    The class of the space must be importable, and its arguments small, as for a search.

    Examples:
        >>> from nni.nas.nn.pytorch import LayerChoice
        >>> class Net(ModelSpace):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.Linear(4, 2), nn.Identity()], label="layer")
        ...     def forward(self, inputs):
        ...         return self.layer(inputs)
        >>> class TestNet(ModelSpaceConformance):
        ...     def make(self):
        ...         return Net()
        ...     def make_inputs(self):
        ...         return (torch.zeros(1, 4),)
        >>> TestNet().test_networks_of_random_samples_compute()
    """

    computes_unfrozen: ClassVar[bool] = True
    """Whether the space itself computes its default; some spaces compute only when frozen."""

    def test_labels_are_the_same_in_each_instance(self) -> None:
        """Two instances have the same dimensions in the same order: samples fit both."""
        first, second = self.make().simplify(), self.make().simplify()

        assert first
        assert list(first) == list(second)
        assert all(first[label].equals(second[label]) for label in first)

    def test_labels_are_not_counted_outside_a_scope(self) -> None:
        """No label depends on what was constructed before."""
        assert not [label for label in self.make().simplify() if label.startswith("global/")]

    def test_unfrozen_space_computes(self) -> None:
        """The space computes its default, unless it is declared not to."""
        if not self.computes_unfrozen:
            return
        space = self.make().eval()

        with torch.no_grad():
            space(*self.make_inputs())

    def test_default_network_computes(self) -> None:
        """The default sample, or its valid substitute, gives a network that computes."""
        space = self.make()
        sample: Sample = {}

        network = space.robust_default(sample)

        assert space.contains(sample)
        self._check_computes(network)

    def test_networks_of_random_samples_compute(self) -> None:
        """Networks of random samples compute finite outputs, and a parameter gets a gradient."""
        space = self.make()
        for sample in self._samples(space):
            self._check_computes(space.freeze(sample))

    def test_frozen_network_has_no_mutables(self) -> None:
        """No choice is left in a frozen network."""
        space = self.make()
        for sample in self._samples(space):
            network = space.freeze(sample)
            left = [
                name
                for name, module in network.named_modules()
                if isinstance(module, MutableModule) and module.simplify()
            ]
            assert left == []

    def test_freezing_leaves_the_space_as_it_was(self) -> None:
        """Weights, dimensions and classes of the space are the same afterwards."""
        space = self.make()
        labels = list(space.simplify())
        weights = copy.deepcopy(space.state_dict())
        classes = [type(module) for module in space.modules()]

        for sample in self._samples(space):
            space.freeze(sample)

        assert list(space.simplify()) == labels
        assert [type(module) for module in space.modules()] == classes
        assert all(_is_same(weights[name], value) for name, value in space.state_dict().items())

    def test_construction_in_a_context_gives_the_frozen_network(self) -> None:
        """`freeze` and construction in a context give parameters of the same names and shapes."""
        space = self.make()
        for sample in self._samples(space):
            with model_context(sample):
                built = self.make()

            assert built.simplify() == {}
            assert _shapes(built) == _shapes(space.freeze(sample))

    def test_incomplete_sample_is_refused_with_the_missing_label(self) -> None:
        """A sample without any label is refused, by `freeze` and in a context."""
        space = self.make()
        errors = []
        for attempt in (lambda: space.freeze({}), self._built_without_a_sample):
            try:
                attempt()
            except SampleMissingError as error:
                errors.append(str(error))

        assert len(errors) == 2, "freeze({}) and model_context({}) must raise SampleMissingError"  # noqa: PLR2004 - both ways

    def test_simplified_model_is_the_same_after_a_dump(self) -> None:
        """A model written as JSON and read again gives the same network, up to its weights."""
        space = SimplifiedModelSpace.from_model(self.make())
        for sample in self._samples(space):
            model = space.freeze(sample)

            loaded = load(dump(model))

            assert loaded.sample == sample
            assert _shapes(loaded.executable_model()) == _shapes(model.executable_model())

    def test_simplified_space_has_all_dimensions(self) -> None:
        """The record of the construction makes a space of the same dimensions."""
        space = SimplifiedModelSpace.from_model(self.make())

        assert list(space.executable_model().simplify()) == list(space.simplify())

    def test_raw_models_share_no_weights(self) -> None:
        """Two models of one sample, and the space, have parameters of their own."""
        space = self.make()
        raw = RawFormatModelSpace.from_model(space)
        sample = self._samples(raw)[0]

        networks = [raw.freeze(sample).executable_model() for _ in range(2)]

        addresses = [
            parameter.data_ptr()
            for module in (space, *networks)
            for parameter in module.parameters()
            if parameter.numel()
        ]
        assert len(addresses) == len(set(addresses))

    def _built_without_a_sample(self) -> ModelSpace:
        with model_context({}):
            return self.make()

    def _check_computes(self, network: nn.Module) -> None:
        """Raise unless a network computes finite outputs, and gradients if it has parameters."""
        outputs = [one for one in _tensors(network.train()(*self.make_inputs())) if one.numel()]

        assert outputs
        assert all(bool(torch.isfinite(one).all()) for one in outputs)
        if any(True for _ in network.parameters()):
            torch.stack([one.sum() for one in outputs]).sum().backward()  # type: ignore[no-untyped-call]
            assert any(parameter.grad is not None for parameter in network.parameters())


def _shapes(module: nn.Module) -> Shapes:
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return one == other


def _tensors(output: Any) -> list[torch.Tensor]:  # noqa: ANN401 - of any network
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, list | tuple):
        return [tensor for one in output for tensor in _tensors(one)]
    return [tensor for one in output.values() for tensor in _tensors(one)]
