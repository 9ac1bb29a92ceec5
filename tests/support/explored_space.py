"""Small space that travels to other processes, for tests of explorations."""

from torch import Tensor, nn

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.nn.pytorch import ModelSpace, MutableLinear
from nni.nas.space import SimplifiedModelSpace


class Widths(ModelSpace):
    """Layer with one of six widths."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = MutableLinear(2, nni.choice("width", [1, 2, 3, 4, 5, 6]))

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.layer(inputs)
        return outputs


def measure(model: nn.Module) -> None:
    """Report the width."""
    layer = model.get_submodule("layer")
    assert isinstance(layer, nn.Linear)
    nni.report_final_result(float(layer.out_features))


def widths() -> SimplifiedModelSpace:
    """Return the space with its evaluator."""
    return SimplifiedModelSpace.from_model(Widths(), FunctionalEvaluator(measure))
