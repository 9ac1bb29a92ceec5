"""Network and mutator of NNI 2.x, as its documentation writes them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nni.nas.nn.pytorch import MutationAnchor
from nni.nas.space.graph_op import Operation
from nni.retiarii import Mutator

LINEAR = "__torch__.torch.nn.modules.linear.Linear"
WIDTHS = (3, 5)


class MutatedNet(nn.Module):
    """Network with a placeholder, which a mutator replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.block = MutationAnchor(label="block")

    def forward(self, inputs: Tensor) -> Any:
        return torch.relu(self.block(inputs))


class BlockMutator(Mutator):
    """Mutator that replaces nodes by a linear layer of one of two widths."""

    def __init__(self, target: str) -> None:
        super(BlockMutator, self).__init__()  # noqa: UP008 - as in the documentation
        self.target = target
        self.candidate_op_list = [
            Operation.new(LINEAR, {"in_features": 4, "out_features": width}) for width in WIDTHS
        ]

    def mutate(self, model: Any) -> None:
        nodes = model.get_nodes_by_label(self.target)
        for node in nodes:
            chosen_op = self.choice(self.candidate_op_list)
            node.update_operation(chosen_op.type, chosen_op.params)
