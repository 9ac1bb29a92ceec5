"""Network of a model space as graphs in plain values, for the page and the REST API."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from nni.mutable import LabeledMutable, Mutable
from nni.nas.execution.search_space import VALUES_LIMIT, cut_text, one_line

if TYPE_CHECKING:
    from torch import fx, nn

    from nni.nas.space.graph_forms import GraphForm
    from nni.nas.space.pytorch.tracing import CallShape

_logger = logging.getLogger(__name__)

NODES_LIMIT: Final = 1_000
"""Number of nodes of all graphs, about; what is inside of further modules is left out."""
PARTS_LIMIT: Final = 35_000
"""Number of parts of the message that the manager gets, which refuses more than 40,000."""
_LABELS_LIMIT: Final = 100
"""Number of labels of one node."""
_EDGES_LIMIT: Final = 2_000
"""Number of edges of all graphs: a node that reads all nodes before it has many."""
_PASSED_OVER: Final = frozenset({"getattr", "getitem", "size", "dim"})
"""Functions that are not drawn: what they give has the edges of what they read."""


def model_graph_of(model_space: object) -> dict[str, Any] | None:
    """Return the network of a model space as graphs, for display; None if it is no torch module.

    `forward` is followed with symbolic inputs (`torch.fx`), one module at a time. Where that is not
    possible, the graph has the modules in their order of registration and no edges. The network
    stays as it was.

    Args:
        model_space: network with its choices.

    Returns:
        `graphs`, of which the first is the network, and `cut`: whether a part was left out. A graph
        has `name`, `traced`, `nodes` and `edges`. An edge is two positions of nodes; an edge to an
        input choice also has the label of the choice, and the value that uses the edge. A node has
        `name`, `kind` (`input`, `output`, `module`, `function`, `tensor`, `layer`, `inputs` or
        `depth`) and `text`; where there are some `labels` of choices, that of its own first; the
        position of the `graph` inside; and `candidates`, each with `name`, `text` and `graph`.
        None also for a network whose outermost module alone has too many nodes.

    Examples:
        >>> from torch import nn
        >>> found = model_graph_of(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
        >>> [node["name"] for node in found["graphs"][0]["nodes"]]
        ['input', '0', '1', 'output']
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model_space, torch.nn.Module):
        return None
    limit = NODES_LIMIT
    with _unchanged(model_space):
        found = _Outline(limit).of(model_space)
        while _n_parts(found) > PARTS_LIMIT and limit > 1:
            limit //= 2
            found = _Outline(limit).of(model_space)
    if _n_parts(found) > PARTS_LIMIT:
        _logger.info(
            "the network is not shown on the page: its outermost module has too many parts"
        )
        return None
    if found["cut"]:
        _logger.info("the page shows about %d nodes of the network, not all", limit)
    return found


@contextmanager
def _unchanged(network: nn.Module) -> Iterator[None]:
    """Undo what `forward` does to the attributes of modules: symbolic values must not stay."""
    kept = [
        (module, {name: _copied(value) for name, value in vars(module).items()})
        for module in network.modules()
    ]
    try:
        yield
    finally:
        for module, attributes in kept:
            vars(module).clear()
            vars(module).update(attributes)


def _n_parts(value: object) -> int:
    """Return the number of parts of a value in a message."""
    if isinstance(value, dict):
        return sum(4 + _n_parts(one) for one in value.values())
    return sum(2 + _n_parts(one) for one in value) if isinstance(value, list) else 0


def _copied(value: Any) -> Any:  # noqa: ANN401 - an attribute
    return value.copy() if type(value) in {dict, list, set} else value


class _Outline:
    """Graphs of a network, outer ones first, up to a number of nodes."""

    def __init__(self, nodes_limit: int) -> None:
        self._nodes_limit = nodes_limit
        self.graphs: list[dict[str, Any]] = []
        self.cut = False
        self.n_edges = 0
        self._n_nodes = 0
        self._numbers: dict[tuple[int, CallShape | None], int] = {}
        self._waiting: deque[tuple[int, nn.Module, CallShape | None]] = deque()
        self._labels: dict[int, list[str]] = {}

    def of(self, network: nn.Module) -> dict[str, Any]:
        """Return the graph of a network, and those of the modules inside."""
        self.inside(network, None)
        while self._waiting:
            number, module, shape = self._waiting.popleft()
            _GraphOutline(self, self.graphs[number], module).write(shape)
        return {"graphs": self.graphs, "cut": self.cut}

    def inside(self, module: nn.Module, shape: CallShape | None) -> int | None:
        """Return the position of a module's graph, which is added later; None if it has none."""
        from nni.nas.space.pytorch.units import is_unit

        if is_unit(module) or not any(True for _ in module.children()):
            return None
        key = (id(module), shape)
        if key not in self._numbers:
            self._n_nodes += 2 + sum(1 for _ in _parts(module))  # with input and output
            if self._n_nodes > self._nodes_limit and self.graphs:
                self.cut = True
                return None
            self._numbers[key] = len(self.graphs)
            self._waiting.append((len(self.graphs), module, shape))
            self.graphs.append({"name": type(module).__name__, "traced": True})
        return self._numbers[key]

    def labels(self, module: nn.Module) -> list[str]:
        """Return the labels of all choices in a module, its own first."""
        if id(module) not in self._labels:
            found: dict[str, None] = {}
            for mutable in getattr(module, "mutables", ()):
                found.update(dict.fromkeys(map(str, mutable.simplify())))
            for child in module.children():
                found.update(dict.fromkeys(self.labels(child)))
            self._labels[id(module)] = list(found)
        return self._labels[id(module)]


class _GraphOutline:
    """Writer of the graph of one module."""

    def __init__(self, outline: _Outline, graph: dict[str, Any], module: nn.Module) -> None:
        self._outline = outline
        self._module = module
        self._nodes: list[dict[str, Any]] = []
        self._edges: dict[tuple[Any, ...], None] = {}
        self._graph = graph
        graph.update(nodes=self._nodes, edges=[])

    def write(self, shape: CallShape | None) -> None:
        """Write nodes and edges for calls of a shape.

        Args:
            shape: arguments that the module is called with; None: those without defaults.
        """
        from nni.nas.nn.pytorch import Cell
        from nni.nas.space.graph import IllegalGraphError
        from nni.nas.space.pytorch.tracing import trace_calls

        if isinstance(self._module, Cell):
            self._write_cell(self._module)
        else:
            try:
                calls = trace_calls(self._module, type(self._module).__name__, shape)
            except IllegalGraphError:
                self._graph["traced"] = False
                for name, child in _parts(self._module):
                    self._add_module(name, child, None)
            else:
                self._write_calls(calls)
        left = _EDGES_LIMIT - self._outline.n_edges
        if len(self._edges) > left:
            self._outline.cut = True
        self._graph["edges"] = [list(edge) for edge in self._edges][:left]
        self._outline.n_edges += len(self._graph["edges"])

    def _write_calls(self, calls: fx.Graph) -> None:
        places: dict[fx.Node, tuple[int, ...]] = {}
        for call in calls.nodes:
            name = str(call.target)
            sources = [place for one in call.all_input_nodes for place in places[one]]
            if call.op in {"call_function", "call_method"}:
                name = getattr(call.target, "__name__", str(call.target))
                if name in _PASSED_OVER:
                    places[call] = tuple(dict.fromkeys(sources))
                    continue
            if call.op == "call_module":
                place = self._write_module(call, name, places)
            else:
                kinds = {"placeholder": "input", "output": "output", "get_attr": "tensor"}
                place = self._add(name, kinds.get(call.op, "function"), "")
                self._connect(sources, place)
            places[call] = (place,)

    def _write_module(
        self, call: fx.Node, name: str, places: dict[fx.Node, tuple[int, ...]]
    ) -> int:
        from torch import fx

        from nni.nas.space.pytorch.tracing import CallShape

        module = self._module.get_submodule(name)
        place = self._add_module(name, module, CallShape(len(call.args), tuple(call.kwargs)))
        first = call.args[0] if call.args else None
        if self._nodes[place]["kind"] == "inputs" and isinstance(first, list | tuple):
            label = self._nodes[place]["labels"][0]
            for value, tensor in enumerate(first):
                if isinstance(tensor, fx.Node):
                    self._connect(places[tensor], place, label, value)
        else:
            self._connect([one for node in call.all_input_nodes for one in places[node]], place)
        return place

    def _write_cell(self, cell: Any) -> None:  # noqa: ANN401 - a Cell
        from nni.nas.nn.pytorch import InputChoice

        prepared = "" if _is_identity(cell.preprocessor) else one_line(cell.preprocessor)
        states = [
            self._add(f"input {index}", "input", prepared) for index in range(cell.num_predecessors)
        ]
        n_given = len(states)
        for number, (operators, choices) in enumerate(zip(cell.ops, cell.inputs, strict=True)):
            outputs = []
            for index, (operator, choice) in enumerate(zip(operators, choices, strict=True)):
                place = self._add_module(f"ops.{number}.{index}", operator, None)
                outputs.append(place)
                if isinstance(choice, InputChoice):
                    for value, state in enumerate(states):
                        self._connect([state], place, choice.label, value)
                else:
                    self._connect([states[value] for value in choice.chosen], place)
            if len(outputs) > 1:
                total = self._add(f"node {n_given + number}", "function", "sum")
                self._connect(outputs, total)
                outputs = [total]
            states += outputs
        unused = "" if cell.merge_op == "all" else "of the nodes that no other one reads"
        end = self._add("concatenation", "function", unused)
        self._connect(states[n_given:], end)
        if cell.postprocessor is not None:
            merged, end = end, self._add_module("postprocessor", cell.postprocessor, None)
            self._connect([merged], end)
        self._connect([end], self._add("output", "output", ""))

    def _connect(self, sources: Any, target: int, *condition: Any) -> None:  # noqa: ANN401 - positions; a label and a value
        for source in sources:
            self._edges[source, target, *condition] = None

    def _add(self, name: str, kind: str, text: str) -> int:
        self._nodes.append({"name": name, "kind": kind, "text": text})
        return len(self._nodes) - 1

    def _add_module(self, name: str, module: nn.Module, shape: CallShape | None) -> int:
        place = self._add(name, "module", _text(module))
        node = self._nodes[place]
        candidates = self._write_form(node, module, shape)
        labels = dict.fromkeys([*node.pop("own", ()), *self._outline.labels(module)])
        if labels:
            node["labels"] = list(labels)[:_LABELS_LIMIT]
        if candidates:
            node["candidates"] = candidates
        elif node["kind"] == "module":
            node.update(self._inside(module, shape))
        return place

    def _write_form(
        self, node: dict[str, Any], module: nn.Module, shape: CallShape | None
    ) -> list[dict[str, Any]]:
        """Set kind and own label of a module that chooses; return its candidates."""
        from nni.nas.space.graph_forms import (
            AlternativesForm,
            RepetitionForm,
            SelectionForm,
        )
        from nni.nas.space.pytorch.tracing import CallShape

        form = _form_of(module)
        match form:
            case AlternativesForm(choice, candidates):
                node.update(kind="layer", text="", own=map(str, choice.simplify()))
                shapes = ((name, one, shape) for name, one in candidates.items())
            case RepetitionForm(depth, blocks) if isinstance(getattr(depth, "label", None), str):
                node.update(kind="depth", text="", own=[str(getattr(depth, "label", ""))])
                shapes = ((name, one, CallShape(1)) for name, one in enumerate(blocks))
            case SelectionForm(choice, n_candidates):
                text = f"of {n_candidates} inputs"
                node.update(kind="inputs", text=text, own=map(str, choice.simplify()))
                return []
            case _:
                return []
        return [
            {"name": str(name), "text": _text(one), **self._inside(one, called)}
            for name, one, called in list(shapes)[:VALUES_LIMIT]
        ]

    def _inside(self, module: nn.Module, shape: CallShape | None) -> dict[str, Any]:
        number = self._outline.inside(module, shape)
        return {} if number is None else {"graph": number}


def _form_of(module: nn.Module) -> GraphForm | None:
    """Return the form in which a module chooses; None for others."""
    ask = getattr(module, "graph_form", None)
    if ask is None or not isinstance(module, Mutable):
        return None
    try:
        form: GraphForm | None = ask()
    except TypeError:
        return None
    return form


def _parts(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules inside with their names; those of lists and dicts in place of them."""
    from torch import nn

    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            yield from ((f"{name}.{inner}", one) for inner, one in _parts(child))
        else:
            yield name, child


def _text(module: nn.Module) -> str:
    """Return a module's class and arguments, with the labels of those that are chosen."""
    from nni.nas.space.graph_forms import UnitForm

    form = _form_of(module)
    if not isinstance(form, UnitForm):
        return one_line(module)
    named = (f"{name}={_argument(one)}" for name, one in form.kwargs.items())
    return cut_text(f"{form.symbol.__name__}({', '.join([*map(_argument, form.args), *named])})")


def _argument(value: object) -> str:
    """Return the text of an argument: of a mutable its label, or its formula with labels."""
    return str(value.label) if isinstance(value, LabeledMutable) else repr(value)


def _is_identity(module: nn.Module) -> bool:
    from torch import nn

    return type(module) is nn.Identity
