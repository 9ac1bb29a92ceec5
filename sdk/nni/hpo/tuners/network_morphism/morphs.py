"""Network morphisms: changes of an architecture that can preserve the function of the network.

Weights exist with which a child computes the same function as its parent: new layers as identities
behind a ReLU, new channels as copies, new connections as zeros.

Source: Chen, Goodfellow and Shlens, Net2Net, ICLR 2016; Wei et al., Network Morphism, ICML 2016.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from nni.hpo.json_value import JsonValue
from nni.hpo.tuners.network_morphism import layers as kinds
from nni.hpo.tuners.network_morphism.graph import Graph
from nni.hpo.tuners.network_morphism.layers import Layer, Shape, output_shape

_KERNELS: Final = (3, 5)
"""Sizes of the kernels of added convolutions."""
_HALVING: Final = (2, 2, 0)
"""Arguments of the pooling that halves the spatial size of a connection."""


def default_graph(input_shape: Shape, classes: int, length: int, width: int) -> Graph:
    """Return the first architecture: blocks of convolutions, then two dense layers.

    Args:
        input_shape: spatial sizes and channels.
        classes: units of the output.
        length: blocks, each ending with a pooling as long as the spatial size is at least 2.
        width: filters of the convolutions and units of the first dense layer.
    """
    axes = len(input_shape) - 1
    layers: list[Layer] = []
    shape = input_shape

    def add(name: str, *args: float) -> None:
        nonlocal shape
        layers.append(Layer(name, (len(layers),), args))
        shape = output_shape(layers[-1], [shape])

    for _ in range(length):
        add("StubReLU")
        add(f"StubConv{axes}d", shape[-1], width, 3)
        add(f"StubBatchNormalization{axes}d", width)
        if min(shape[:-1]) >= _HALVING[0]:
            add(f"StubPooling{axes}d", *_HALVING)
    add(f"StubGlobalPooling{axes}d")
    add(f"StubDropout{axes}d", 0.25)
    add("StubDense", shape[0], width)
    add("StubReLU")
    add("StubDense", width, classes)
    return Graph(input_shape, tuple(layers))


def main_nodes(graph: Graph) -> tuple[int, ...]:
    """Return the nodes of the path from input to output through the first input of each merge."""
    way = [len(graph.layers)]
    while way[-1]:
        way.append(graph.layers[way[-1] - 1].inputs[0])
    return tuple(reversed(way))


def children(graph: Graph, rng: Random) -> Iterator[Graph]:
    """Yield random children: a deeper, a wider, two more connected; skip impossible ones."""
    for child in (
        _some_deeper(graph, rng),
        _some_wider(graph, rng),
        _some_connected(graph, rng, kinds.ADD),
        _some_connected(graph, rng, kinds.CONCATENATE),
    ):
        if child is not None:
            yield child


def _some_deeper(graph: Graph, rng: Random) -> Graph | None:
    places = [node for node in main_nodes(graph)[1:] if _kind(graph, node) == kinds.RELU]
    kernel = rng.choice(_KERNELS)
    return deeper(graph, rng.choice(places), kernel) if places else None


def _some_wider(graph: Graph, rng: Random) -> Graph | None:
    last = len(graph.layers) - 1
    places = [index for index, layer in enumerate(graph.layers[:last]) if layer.width]
    halves = rng.choice((3, 4))  # one and a half times, or twice, as wide
    if not places:
        return None
    place = rng.choice(places)
    return wider(graph, place, max(graph.layers[place].width * halves // 2, 2))


def _some_connected(graph: Graph, rng: Random, merge: str) -> Graph | None:
    nodes = [node for node in main_nodes(graph)[1:] if len(graph.shapes[node]) > 1]
    ends = [node for node in nodes if _kind(graph, node) == kinds.NORM]
    if not ends:
        return None
    end = rng.choice(ends)
    starts = [node for node in nodes if node < end]
    return connected(graph, rng.choice(starts), end, merge) if starts else None


def deeper(graph: Graph, node: int, kernel: int) -> Graph:
    """Return the graph with one more layer and its ReLU inserted after a ReLU.

    Args:
        graph: the parent.
        node: output of a ReLU; flat ones get a dense layer, others a convolution.
        kernel: of the convolution; odd.
    """
    *spatial, channels = graph.shapes[node]
    if spatial:
        conv = Layer(f"StubConv{len(spatial)}d", (node,), (channels, channels, kernel))
        norm = Layer(f"StubBatchNormalization{len(spatial)}d", (node + 1,), (channels,))
        added = [conv, norm]
    else:
        added = [Layer("StubDense", (node,), (channels, channels))]
    added.append(Layer("StubReLU", (node + len(added),)))
    return _spliced(graph, node, added, ["to_deeper_model", node, kernel])


def connected(graph: Graph, start: int, end: int, merge: str) -> Graph | None:
    """Return the graph with a skip connection to a later node; None if the sizes cannot match.

    Args:
        graph: the parent.
        start: a node with spatial axes.
        end: a later one on the main path.
        merge: `Add`, through a convolution, or `Concatenate`, followed by one.

    Returns:
        The child; None if halving does not bring `start` to the spatial size of `end`.
    """
    *target, channels = graph.shapes[end]
    axes, shape = len(target), graph.shapes[start]
    added: list[Layer] = []
    last = start

    def add(name: str, *args: float, inputs: tuple[int, ...] = ()) -> None:
        nonlocal last
        added.append(Layer(name, inputs or (last,), args))
        last = end + len(added)

    while list(shape[:-1]) != target:
        if min(shape[:-1]) < _HALVING[0]:
            return None
        add(f"StubPooling{axes}d", *_HALVING)
        shape = output_shape(added[-1], [shape])
    if merge == kinds.ADD:
        add(f"StubConv{axes}d", shape[-1], channels, 1)
        add(f"StubBatchNormalization{axes}d", channels)
        add("StubAdd", inputs=(end, last))
    else:
        add("StubConcatenate", inputs=(end, last))
        add(f"StubConv{axes}d", shape[-1] + channels, channels, 1)
        add(f"StubBatchNormalization{axes}d", channels)
    word = "to_add_skip_model" if merge == kinds.ADD else "to_concat_skip_model"
    return _spliced(graph, end, added, [word, start, end])


def wider(graph: Graph, index: int, width: int) -> Graph | None:
    """Return the graph with a wider layer, and its addends as wide; None if they cannot be.

    Args:
        graph: the parent.
        index: of a convolution or dense layer other than the last.
        width: more than it has.

    Returns:
        The child; None if a concatenation or the input would have to change.
    """
    widths = {index: width}
    while True:
        layers, addends, wanted = _fitted(graph, widths)
        if not addends:
            history = (*graph.operation_history, ["to_wider_model", index, width])
            return Graph(graph.input_shape, tuple(layers), history)
        for node in addends:
            sources = _sources(graph, node)
            if sources is None:
                return None
            widths |= dict.fromkeys(sources, wanted)


def _fitted(graph: Graph, widths: Mapping[int, int]) -> tuple[list[Layer], list[int], int]:
    """Return layers with new widths, up to an addition of unequal ones; its narrow nodes, width.

    If the inputs of an addition differ then, also return the nodes that are too narrow for it, and
    the width that they need.
    """
    layers: list[Layer] = []
    shapes = [graph.input_shape]
    for index, layer in enumerate(graph.layers):
        inputs = [shapes[node] for node in layer.inputs]
        args = layer.args
        if layer.kind in {kinds.CONV, kinds.DENSE}:
            args = (inputs[0][-1], widths.get(index, layer.width), *layer.args[2:])
        elif layer.kind == kinds.NORM:
            args = (inputs[0][-1],)
        elif layer.kind == kinds.ADD:
            most = max(shape[-1] for shape in inputs)
            narrow = [node for node in layer.inputs if shapes[node][-1] < most]
            if narrow:
                return layers, narrow, most
        layers.append(replace(layer, args=args))
        shapes.append(output_shape(layers[-1], inputs))
    return layers, [], 0


def _sources(graph: Graph, node: int) -> set[int] | None:
    """Return the layers that determine the channels of a node; None if not only their widths do."""
    if node == 0:
        return None
    layer = graph.layers[node - 1]
    if layer.width:
        return {node - 1}
    if layer.kind in {kinds.CONCATENATE, kinds.FLATTEN}:
        return None
    found: set[int] = set()
    for read in layer.inputs:
        sources = _sources(graph, read)
        if sources is None:
            return None
        found |= sources
    return found


def _spliced(graph: Graph, node: int, added: Sequence[Layer], operation: JsonValue) -> Graph:
    """Return the graph with layers inserted after a node, between it and its readers.

    Args:
        graph: the parent.
        node: after which they come.
        added: layers that read nodes up to `node`, or each other as `node + 1`, `node + 2`, ...
        operation: for the history.
    """
    shift = len(added)

    def moved(layer: Layer) -> Layer:
        read = tuple(each + shift if each >= node else each for each in layer.inputs)
        return replace(layer, inputs=read)

    layers = (*graph.layers[:node], *added, *map(moved, graph.layers[node:]))
    return Graph(graph.input_shape, layers, (*graph.operation_history, operation))


def _kind(graph: Graph, node: int) -> str:
    return graph.layers[node - 1].kind
