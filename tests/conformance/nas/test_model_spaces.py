"""Spaces of every primitive pass the conformance suite that `nni.testing.model_spaces` ships."""

from typing import Any

import torch
from torch import Tensor, nn

import nni
from nni.mutable import ExpressionConstraint, MutableExpression, ensure_frozen
from nni.nas.nn.pytorch import (
    Cell,
    InputChoice,
    LayerChoice,
    ModelSpace,
    MutableBatchNorm2d,
    MutableConv2d,
    MutableLinear,
    ParametrizedModule,
    Repeat,
)
from nni.testing.model_spaces import ModelSpaceConformance
from tests.unit.sdk.nni.nas.space_models import TinySpace


class NestedChoices(ModelSpace, label_prefix="nested"):
    """Choices inside candidates, with automatic labels."""

    def __init__(self) -> None:
        super().__init__()
        inner = LayerChoice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.first = LayerChoice([nn.Sequential(nn.Linear(4, 4), inner), nn.Linear(4, 4)])
        self.last = nn.Linear(4, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.last(self.first(inputs))
        return output


class SkipConnections(ModelSpace):
    """Inputs of several reductions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.some = InputChoice(3, 2, "mean", label="some")
        self.single = InputChoice(3, 1, label="single")

    def forward(self, inputs: Tensor) -> Tensor:
        states = [layer(inputs) for layer in self.layers]
        output: Tensor = self.some(states) + self.single(states)
        return output


class Block(ParametrizedModule):
    """Module of a user with mutable arguments, and a choice inside."""

    def __init__(self, width: int, index: int) -> None:
        super().__init__()
        self.widen = nn.Linear(4, width)
        self.activation = LayerChoice([nn.ReLU(), nn.GELU()], label=f"activation{index}")
        self.narrow = nn.Linear(width, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = inputs + self.narrow(self.activation(self.widen(inputs)))
        return output


class Deep(ModelSpace, label_prefix="deep"):
    """Depth, and blocks whose widths are expressions."""

    def __init__(self) -> None:
        super().__init__()
        ratio: Any = nni.choice("ratio", [1, 2])
        self.body = Repeat(lambda index: Block(4 * ratio, index), (0, 3), label="depth")
        self.tail = Repeat(self._automatic, (1, 2), label="tail")
        self.last = LayerChoice([nn.Linear(4, 2), nn.Linear(4, 2, bias=False)])

    def _automatic(self, index: int) -> nn.Module:
        del index
        return LayerChoice([nn.Linear(4, 4), nn.Identity()])

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.last(self.tail(self.body(inputs)))
        return output


class Separate(nn.Module):
    """Operator that knows which tensor it reads."""

    def __init__(self, node: int, operator: int, read: int | None) -> None:
        super().__init__()
        del node, operator
        self.linear = nn.Linear(4, 4, bias=bool(read))

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.linear(inputs)
        return output


class Cells(ModelSpace, label_prefix="cells"):
    """Cells of listed operators, and of operators that are built for their input."""

    def __init__(self) -> None:
        super().__init__()
        self.normal = Cell([nn.Linear(4, 4), nn.Identity()], 2, 2, 2, label="normal")
        self.loose = Cell(
            {"separate": Separate, "none": self._none}, 3, merge_op="loose_end", label="loose"
        )
        self.project = nn.Linear(8, 4)

    @staticmethod
    def _none(node: int, operator: int, read: int | None) -> nn.Module:
        del node, operator, read
        return nn.Identity()

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.loose(self.project(self.normal(inputs, inputs)))
        return output


class Convolutions(ModelSpace, label_prefix="conv"):
    """Channels, kernels and a constraint, whose value the constructor uses."""

    def __init__(self) -> None:
        super().__init__()
        channels: Any = self.add_mutable(nni.choice("channels", [4, 8]))
        kernel: Any = self.add_mutable(nni.choice("kernel", [1, 3]))
        self.add_mutable(ExpressionConstraint(channels * kernel < 20, label="cost"))
        self.conv = MutableConv2d(1, channels, kernel, padding=kernel // 2)
        self.norm = MutableBatchNorm2d(channels)
        self.head = MutableLinear(MutableExpression.max(channels, 6) * 0 + channels, 2)
        self.scale = 1 / ensure_frozen(channels)

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.head(self.norm(self.conv(images)).mean((2, 3)) * self.scale)
        return output


class Vectors(ModelSpaceConformance):
    """Spaces whose networks take four numbers."""

    __test__ = False

    def make_inputs(self) -> tuple[Tensor]:
        return (torch.ones(3, 4),)


class TestTinySpace(Vectors):
    __test__ = True

    def make(self) -> ModelSpace:
        return TinySpace()


class TestNestedChoices(Vectors):
    __test__ = True

    def make(self) -> ModelSpace:
        return NestedChoices()


class TestSkipConnections(Vectors):
    __test__ = True

    def make(self) -> ModelSpace:
        return SkipConnections()


class TestDeep(Vectors):
    __test__ = True
    draws = 8

    def make(self) -> ModelSpace:
        return Deep()


class TestCells(Vectors):
    __test__ = True

    def make(self) -> ModelSpace:
        return Cells()


class TestConvolutions(ModelSpaceConformance):
    def make(self) -> ModelSpace:
        return Convolutions()

    def make_inputs(self) -> tuple[Tensor]:
        return (torch.ones(2, 1, 5, 5),)
