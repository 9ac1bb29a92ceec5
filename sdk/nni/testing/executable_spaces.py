"""Conformance suite of model spaces in a format: raw, simplified, graphs with mutators.

Import it from this module: `nni.testing` itself does not load torch.
"""

import copy
from typing import Any, ClassVar

import torch

from nni.common.serializer import dump, load
from nni.mutable import Sample, SampleMissingError
from nni.nas.space import ExecutableModelSpace, ModelStatus
from nni.testing.space_samples import SpaceConformance


class ExecutableSpaceConformance(SpaceConformance[ExecutableModelSpace]):
    """Tests that a space must pass in its format; subclass it in a module of tests.

    Networks are small, as for a search, and compute one tensor.

    Examples:
        >>> from nni.nas.nn.pytorch import LayerChoice, ModelSpace
        >>> from nni.nas.space import GraphModelSpace
        >>> from torch import nn
        >>> class Net(ModelSpace):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.Linear(4, 2), nn.ReLU()], label="layer")
        ...     def forward(self, inputs):
        ...         return self.layer(inputs)
        >>> class TestNet(ExecutableSpaceConformance):
        ...     def make(self):
        ...         return GraphModelSpace.from_model(Net())
        ...     def make_inputs(self):
        ...         return (torch.zeros(1, 4),)
        >>> TestNet().test_network_computes_the_same_after_a_dump()
    """

    dumps: ClassVar[bool] = True
    """Whether the format can be written as JSON."""

    def test_labels_are_the_same_in_each_instance(self) -> None:
        """Two instances have the same dimensions in the same order: samples fit both."""
        first, second = self.make(), self.make()

        assert first.simplify()
        assert list(first.simplify()) == list(second.simplify())
        assert all(second.contains(sample) for sample in self._samples(first))

    def test_simplified_space_has_the_dimensions_of_the_sample(self) -> None:
        """A sample has a value for each label, and for no other one."""
        space = self.make()

        assert all(set(sample) == set(space.simplify()) for sample in self._samples(space))

    def test_same_seed_draws_the_same_samples(self) -> None:
        """Samples depend on the random state alone."""
        assert self._samples(self.make()) == self._samples(self.make())

    def test_default_network_computes(self) -> None:
        """The default sample, or its valid substitute, gives a network with finite outputs."""
        space = self.make()
        sample: Sample = {}

        model = space.robust_default(sample)

        assert space.contains(sample)
        assert torch.isfinite(self._output(model.executable_model())).all()

    def test_networks_of_random_samples_compute(self) -> None:
        """Random samples give frozen models, whose networks compute."""
        space = self.make()
        for sample in self._samples(space):
            model = space.freeze(sample)

            assert model.status is ModelStatus.Frozen
            assert model.sample == sample
            assert not model.simplify()
            assert torch.isfinite(self._output(model.executable_model())).all()

    def test_models_of_one_sample_compute_the_same(self) -> None:
        """Two models of a sample have the same outputs for the same weights."""
        space = self.make()
        for sample in self._samples(space):
            first, second = (space.freeze(sample).executable_model() for _ in range(2))

            self._check_same(first, second)

    def test_freezing_leaves_the_space_as_it_was(self) -> None:
        """Dimensions, status and what is dumped are the same afterwards."""
        space = self.make()
        labels, dumped = list(space.simplify()), self._dumped(space)

        for sample in self._samples(space):
            space.freeze(sample).executable_model()

        assert list(space.simplify()) == labels
        assert space.status is ModelStatus.Initialized
        assert space.sample is None
        assert self._dumped(space) == dumped

    def test_frozen_model_cannot_be_frozen_again(self) -> None:
        """A model that has its sample is refused by `freeze`."""
        space = self.make()
        sample = self._samples(space)[0]
        model = space.freeze(sample)
        refused = False
        try:
            model.freeze(sample)
        except RuntimeError:
            refused = True

        assert refused, "freeze of a frozen model must raise RuntimeError"

    def test_incomplete_sample_is_refused_with_the_missing_label(self) -> None:
        """A sample without any label is refused."""
        space = self.make()
        refused = ""
        try:
            space.freeze({})
        except SampleMissingError as error:
            refused = str(error)

        assert any(label in refused for label in space.simplify()), (
            "freeze({}) must raise SampleMissingError with the label"
        )

    def test_network_computes_the_same_after_a_dump(self) -> None:
        """A model that is written and read again has its sample, and the same outputs."""
        if not self.dumps:
            return
        space = self.make()
        for sample in self._samples(space):
            model = space.freeze(sample)

            loaded = load(dump(model))

            assert loaded.sample == sample
            assert loaded.status is ModelStatus.Frozen
            self._check_same(model.executable_model(), loaded.executable_model())

    def test_space_freezes_the_same_after_a_dump(self) -> None:
        """A space that is written and read again has the same dimensions, samples and networks."""
        if not self.dumps:
            return
        space = self.make()

        loaded = load(dump(space))

        assert list(loaded.simplify()) == list(space.simplify())
        assert self._samples(loaded) == self._samples(space)
        for sample in self._samples(space):
            self._check_same(
                space.freeze(sample).executable_model(), loaded.freeze(sample).executable_model()
            )

    def _dumped(self, space: ExecutableModelSpace) -> str:
        return dump(space) if self.dumps else ""

    def _output(self, network: Any) -> torch.Tensor:  # noqa: ANN401 - of any format
        """Return the output of a network in eval mode, without gradients."""
        with torch.no_grad():
            output: torch.Tensor = network.eval()(*self.make_inputs())
        return output

    def _check_same(self, one: Any, other: Any) -> None:  # noqa: ANN401 - of any format
        """Raise unless two networks have the same outputs for the same weights."""
        other.load_state_dict(copy.deepcopy(one.state_dict()))

        assert torch.equal(self._output(one), self._output(other))
