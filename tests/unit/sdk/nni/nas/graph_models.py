"""Networks for the tests of graphs; generated code imports them by name."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import nni
from nni.mutable import Categorical, ensure_frozen
from nni.nas.nn.pytorch import (
    InputChoice,
    LayerChoice,
    ModelSpace,
    MutableLinear,
    MutationAnchor,
    ParametrizedModule,
    Repeat,
)
from nni.nas.space import Mutator, StationaryMutator
from nni.nas.space.graph_op import Operation
from nni.nas.utils import basic_unit

LINEAR = "__torch__.torch.nn.modules.linear.Linear"


class Branch(nn.Module):
    """Module without choices, which becomes a graph of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, inputs: Tensor, scale: float = 2.0, shift: Tensor | None = None) -> Tensor:
        output: Tensor = self.inner(inputs) * scale
        return output if shift is None else output + shift


@basic_unit
class Cutoff(nn.Module):
    """Basic unit: its branch cannot be traced."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.clamp(max=self.limit) if inputs.sum() > 0 else inputs


class EverySpace(ModelSpace, label_prefix="every"):
    """One choice of each kind: layers, nested ones, inputs, depth, arguments and expressions."""

    def __init__(self) -> None:
        super().__init__()
        ratio: Any = Categorical([1, 2], label="ratio")
        inner = LayerChoice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, label="inner")
        self.stem = MutableLinear(4, ratio * 3)
        self.layer = LayerChoice(
            [nn.Sequential(MutableLinear(ratio * 3, 4), inner), MutableLinear(ratio * 3, 4)],
            label="layer",
        )
        self.body = Repeat(lambda _: nn.Linear(4, 4), (0, 2), label="depth")
        self.branch = Branch(4)
        self.skip = InputChoice(3, None, label="skip")
        self.cutoff = Cutoff(0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        first = self.layer(self.stem(inputs))
        second = self.body(first)
        third = self.branch(second, shift=first)
        chosen = torch.cat([self.skip([first, second, third]), inputs[:, 1:3]], dim=1)
        dropped = functional.dropout(chosen, 0.5, training=self.training)
        output: Tensor = self.cutoff(dropped.flatten(1)).view(-1, 6)
        return output


SAMPLE = {
    "every/ratio": 2,
    "every/inner": "tanh",
    "every/layer": 0,
    "every/depth": 2,
    "every/skip": [0, 2],
}
"""Sample of `EverySpace`."""


class AnchorNet(nn.Module):
    """Network of two anchors, for mutators."""

    def __init__(self) -> None:
        super().__init__()
        self.first = MutationAnchor(label="first", features=4)
        self.second = MutationAnchor(label="second", features=4)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.second(self.first(inputs))
        return output


class OperationMutator(StationaryMutator):
    """Mutator that replaces the nodes of a label by one of several operations."""

    def __init__(self, target: str, candidates: list[Operation], label: str | None = None) -> None:
        super().__init__(label=label)
        self.target = target
        self.candidates = candidates

    def mutate(self, model: Any) -> None:
        for node in model.get_nodes_by_label(self.target):
            chosen = self.choice(self.candidates)
            node.update_operation(chosen.type, chosen.params)


class DepthMutator(Mutator):
    """Mutator that puts layers behind an anchor, whose number decides on further choices."""

    def mutate(self, model: Any) -> None:
        (edge,) = model.get_nodes_by_label("second")[0].outgoing_edges
        for _ in range(self.choice([0, 1, 2])):
            features = self.choice([4])
            parameters = {"in_features": 4, "out_features": features}
            node = edge.graph.insert_node_on_edge(edge, "added", LINEAR, parameters)
            (edge,) = node.outgoing_edges


class Branching(nn.Module):
    """Network that cannot be traced: it depends on values of its input."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs if inputs.sum() > 0 else -inputs


class ModeBranching(nn.Module):
    """Network that branches on its mode."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs if self.training else -inputs


class OwnParameter(nn.Module):
    """Network with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.scale


class UsedValue(ModelSpace):
    """Space whose constructor uses a value, which a graph does not see."""

    def __init__(self) -> None:
        super().__init__()
        width = self.add_mutable(nni.choice("width", [1, 2]))
        self.layer = nn.Linear(4, ensure_frozen(width))

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.layer(inputs)
        return output


class ChoiceInUnit(ParametrizedModule):
    """Basic unit with a choice inside, which a graph does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="inside")

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.layer(inputs)
        return output


def linear(width: int) -> Operation:
    """Return the operation of a layer from four features."""
    return Operation.new(LINEAR, {"in_features": 4, "out_features": width})
