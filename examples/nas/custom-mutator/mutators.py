"""Mutator that puts a block in the place of an anchor."""

from nni.nas.space import StationaryMutator
from nni.nas.space.graph_op import Operation

SEPARABLE = "blocks.Separable"
PLAIN = "blocks.Plain"


class BlockMutator(StationaryMutator):
    """Replaces the anchor of a label by one of several blocks, of one of several kernel sizes.

    Args:
        target: label of the anchor, whose parameters say how many channels the block has.
        kernels: kernel sizes to choose from.
    """

    def __init__(self, target, kernels=(1, 3, 5)):
        super().__init__(label=target)
        self.target = target
        self.kernels = kernels

    def mutate(self, model):
        kernel = self.choice(self.kernels)
        block = self.choice([PLAIN, SEPARABLE])
        for node in model.get_nodes_by_label(self.target):
            anchor = node.operation.parameters
            node.update_operation(
                Operation.new(
                    f"__torch__.{block}",
                    {"inputs": anchor["inputs"], "outputs": anchor["outputs"], "kernel": kernel},
                )
            )


class SkipMutator(StationaryMutator):
    """Adds the input of a block to its output, or does not; what no choice of layers can do."""

    def __init__(self, target):
        super().__init__(label=f"skip_{target}")
        self.target = target

    def mutate(self, model):
        if not self.choice([False, True]):
            return
        (node,) = model.get_nodes_by_label(self.target)
        (before,), (after,) = node.incoming_edges, node.outgoing_edges
        total = node.graph.insert_node_on_edge(after, f"{node.name}_skip", "Function.operator.add")
        total.incoming_edges[0].tail_slot = 0
        node.graph.add_edge((before.head, before.head_slot), (total, 1))
