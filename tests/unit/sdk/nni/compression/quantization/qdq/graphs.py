"""Small graphs of ONNX, and the pairs in them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

SHAPE = (2, 4)


class Graph:
    """Graph that reads `x` and is built node by node."""

    def __init__(self) -> None:
        self.x = ir.Value(name="x", shape=ir.Shape(SHAPE), type=ir.TensorType(ir.DataType.FLOAT))
        self.graph = ir.Graph([self.x], [], nodes=[], opset_imports={"": 18}, name="graph")

    @property
    def model(self) -> ir.Model:
        """Return the graph as a model."""
        return ir.Model(self.graph, ir_version=10)

    def constant(self, value: Any, dtype: Any = np.float32) -> ir.Value:
        """Add a stored number or array."""
        array, name = np.asarray(value, dtype), f"c{len(self.graph.initializers)}"
        found = ir.val(name, const_value=ir.tensor(array, name=name))
        self.graph.register_initializer(found)
        return found

    def add(self, operator: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        """Add a node and return its output."""
        node = ir.node(operator, list(inputs), attributes)
        node.outputs[0].shape = inputs[0].shape
        node.outputs[0].name = f"v{len(list(self.graph))}"
        self.graph.append(node)
        return node.outputs[0]

    def split(self, value: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Add a node that parts a value in two, and return its outputs."""
        node = ir.node("Split", [value], {"axis": 1, "num_outputs": 2}, num_outputs=2)
        for index, one in enumerate(node.outputs):
            one.shape, one.name = ir.Shape((2, 2)), f"part{index}"
        self.graph.append(node)
        return node.outputs[0], node.outputs[1]

    def rounded(self, value: ir.Value, scale: float = 0.5) -> ir.Value:
        """Add a pair."""
        numbers = (self.constant(scale), self.constant(0, np.uint8))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", value, *numbers), *numbers)

    def weight(self, array: Any, scale: Any = 0.5, **attributes: Any) -> ir.Value:
        """Add stored integers and DequantizeLinear."""
        zeros = self.constant(np.zeros(np.shape(scale)), np.int8)
        stored = self.constant(array, np.int8)
        return self.add("DequantizeLinear", stored, self.constant(scale), zeros, **attributes)

    def outputs(self, values: Sequence[ir.Value]) -> None:
        """Make values the outputs of the graph."""
        self.graph.outputs.extend(values)

    def operators(self) -> Counter[str]:
        """Return the operators of the graph."""
        return Counter(node.op_type for node in self.graph)


def node_of(value: ir.Value | None) -> ir.Node:
    """Return the node that computes a value."""
    node = value.producer() if value is not None else None
    assert node is not None
    return node


def read_by(value: ir.Value) -> list[str]:
    """Return the operators that compute the inputs of a value's node; `x` for none."""
    inputs = node_of(value).inputs
    producers = [one.producer() if one is not None else None for one in inputs]
    return [one.op_type if one is not None else "x" for one in producers]
