"""Space of a network without choices, and of mutators."""

import pytest
from torch import nn

from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.retiarii.experiment.mutated_space import mutated_space
from tests.support.mutated_networks import BlockMutator, MutatedNet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Choices(ModelSpace):
    """Network with a choice of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")

    def forward(self, inputs: object) -> object:
        return self.layer(inputs)


def test_each_mutator_is_a_dimension() -> None:
    assert len(mutated_space(MutatedNet(), [BlockMutator("block")]).simplify()) == 1


@pytest.mark.claim("nas", 38)
def test_choices_inside_the_network_and_mutators_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="must not be used together"):
        mutated_space(Choices(), [BlockMutator("block")])
