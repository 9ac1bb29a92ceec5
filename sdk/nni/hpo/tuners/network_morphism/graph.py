"""An architecture as a graph: tensors are nodes, layers are edges; from and to JSON.

Standard library only, so that trials start quickly; `produce_torch_model` needs torch.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nni.hpo.json_value import JsonValue
from nni.hpo.tuners.network_morphism.layers import Layer, Shape, output_shape, weights

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True)
class Graph:
    """Network as a directed graph of layers without cycles, from one input to one output.

    Node 0 is the input, node `i + 1` the output of layer `i`; a layer reads only earlier nodes, and
    the last node is the output of the graph.
    """

    input_shape: Shape
    layers: tuple[Layer, ...]
    operation_history: tuple[JsonValue, ...] = ()
    """The morphs from the first architecture on, oldest first."""
    weighted: bool = False
    """True if the graph has weights; those of this tuner have none."""
    shapes: tuple[Shape, ...] = field(init=False, compare=False)
    """Per node, without the batch axis."""
    _source: dict[str, JsonValue] | None = field(default=None, compare=False, repr=False)
    """The document that it was read from, and is written as."""

    def __post_init__(self) -> None:
        """Infer the shapes of the nodes; raise ValueError for a layer that does not fit.

        Raises:
            ValueError: a layer does not fit to its inputs.
        """
        shapes = [self.input_shape]
        for index, layer in enumerate(self.layers):
            if not all(0 <= node <= index for node in layer.inputs):
                raise ValueError(f"layer {index} must read earlier nodes, reads {layer.inputs}")
            try:
                shapes.append(output_shape(layer, [shapes[node] for node in layer.inputs]))
            except ValueError as error:
                raise ValueError(f"layer {index}: {error}") from error
        object.__setattr__(self, "shapes", tuple(shapes))

    @property
    def architecture(self) -> tuple[Shape, tuple[Layer, ...]]:
        """The network, without its history; equal for graphs of the same network."""
        return self.input_shape, self.layers

    def size(self) -> int:
        """Return the number of trainable weights."""
        return sum(
            weights(layer, shape) for layer, shape in zip(self.layers, self.shapes[1:], strict=True)
        )

    def document(self) -> dict[str, JsonValue]:
        """Return the graph as documented JSON; one that was read returns its original document."""
        if self._source is not None:
            return deepcopy(self._source)
        made: dict[str, list[list[int]]] = {str(node): [] for node in range(len(self.shapes))}
        used = deepcopy(made)
        for index, layer in enumerate(self.layers):
            for node in layer.inputs:
                used[str(node)].append([index + 1, index])
                made[str(index + 1)].append([node, index])
        layers = list(enumerate(self.layers))
        return {
            "input_shape": list(self.input_shape),
            "weighted": self.weighted,
            "operation_history": deepcopy(list(self.operation_history)),
            "layer_id_to_input_node_ids": {str(i): list(layer.inputs) for i, layer in layers},
            "layer_id_to_output_node_ids": {str(i): [i + 1] for i, _ in layers},
            "adj_list": used,
            "reverse_adj_list": made,
            "node_list": [[node, list(shape)] for node, shape in enumerate(self.shapes)],
            "layer_list": [[i, _layer_entry(i, layer)] for i, layer in layers],
        }

    def to_json(self) -> str:
        """Return the document as text."""
        return json.dumps(self.document())

    def produce_torch_model(self) -> "nn.Module":
        """Return a new, untrained torch module of the graph; ImportError without torch.

        It maps batches `(N, channels, *spatial)`, the order of axes that torch uses, to
        `(N, classes)`.

        Raises:
            ImportError: torch is missing.
        """
        try:
            from nni.hpo.tuners.network_morphism.torch_model import GraphModule
        except ImportError as error:
            raise ImportError(
                f"produce_torch_model needs torch ({error}); install it with: pip install torch"
            ) from error
        return GraphModule(self.layers, self.shapes)


def json_to_graph(json_model: str | Mapping[str, JsonValue]) -> Graph:
    """Return the graph of a JSON text, or of a parsed one; ValueError says what is wrong.

    Raises:
        ValueError: it is no graph in the documented form; the text says what is wrong.
    """
    source: Any = json.loads(json_model) if isinstance(json_model, str) else deepcopy(json_model)
    try:
        entries = {int(number): list(entry) for number, entry in sorted(source["layer_list"])}
        inputs = {i: _nodes(source, "layer_id_to_input_node_ids", i) for i in entries}
        outputs = {i: _nodes(source, "layer_id_to_output_node_ids", i) for i in entries}
        shape = tuple(int(size) for size in source["input_shape"])
        history, weighted = tuple(source["operation_history"]), bool(source["weighted"])
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"a graph must be an object with layer_list and the other documented keys ({error!r})"
        ) from error
    nodes, ordered = {_only_source(inputs, outputs): 0}, []
    while entries:
        # Always the first that is ready: a topological order that keeps the given one.
        index = next((i for i in entries if all(node in nodes for node in inputs[i])), None)
        if index is None:
            raise ValueError(f"layers {sorted(entries)} wait for each other, or for a lost node")
        name, _, _, *args = entries.pop(index)
        ordered.append(Layer(str(name), tuple(nodes[node] for node in inputs[index]), tuple(args)))
        (node,) = outputs[index]
        nodes[node] = len(ordered)
    return Graph(shape, tuple(ordered), history, weighted=weighted, _source=source)


def _nodes(source: Mapping[str, Any], key: str, index: int) -> tuple[int, ...]:
    return tuple(int(node) for node in source[key][str(index)])


def _only_source(inputs: dict[int, tuple[int, ...]], outputs: dict[int, tuple[int, ...]]) -> int:
    """Return the one node that is read but made by no layer; ValueError unless there is one."""
    made = [node for nodes in outputs.values() for node in nodes]
    if len(set(made)) != len(inputs):
        raise ValueError("every layer of a graph must make one node of its own")
    free = {node for nodes in inputs.values() for node in nodes} - set(made)
    if len(free) != 1:
        raise ValueError(f"a graph must have one input node, got {sorted(free)}")
    return free.pop()


def _layer_entry(index: int, layer: Layer) -> list[JsonValue]:
    several = len(layer.inputs) > 1
    return [layer.name, list(layer.inputs) if several else layer.inputs[0], index + 1, *layer.args]
