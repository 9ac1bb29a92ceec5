"""Conversion of a network to graphs: one graph for each module that is no basic unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from torch import fx, nn

from nni.nas.space.graph import Graph, IllegalGraphError, Node
from nni.nas.space.graph_forms import (
    AlternativesForm,
    GraphForm,
    RepetitionForm,
    SelectionForm,
    UnitForm,
)
from nni.nas.space.graph_op import (
    CELL,
    FUNCTION_PREFIX,
    METHOD_PREFIX,
    InputSlot,
    Operation,
    TrainingMode,
)
from nni.nas.space.graph_space import ROOT_GRAPH, GraphModelSpace
from nni.nas.space.inline_mutator import INPUT_CHOICE, LAYER_CHOICE, REPEAT
from nni.nas.space.pytorch.functions import function_name
from nni.nas.space.pytorch.tracing import CallShape, TrainingFlag, trace_calls
from nni.nas.space.pytorch.units import constructed, is_unit, unit_operation

_OUTPUT: Final = "output"
_LABEL: Final = "label"


class GraphConverter:
    """Converter that adds the graphs of a network to a model.

    Args:
        model: model without graphs.
    """

    def __init__(self, model: GraphModelSpace) -> None:
        self._model = model
        self._names: dict[tuple[int, CallShape | None], str] = {}

    def convert(self, network: nn.Module) -> None:
        """Add the graphs of a network.

        Args:
            network: network with its choices.

        Raises:
            IllegalGraphError: it cannot be written as graphs.
        """
        if _form_of(network, "") is not None:
            raise IllegalGraphError(
                None,
                f"{type(network).__name__} must be a part of the network, whose forward pass calls "
                "it; put it into a ModelSpace",
            )
        self._add_graph(network, "", None)

    def _add_graph(self, module: nn.Module, python_name: str, shape: CallShape | None) -> str:
        """Add the graph of a module for calls of a shape, unless there is one; return its name."""
        key = (id(module), shape)
        if key in self._names:
            return self._names[key]
        plain = python_name.replace(".", "__")
        name = self._free_name(f"{ROOT_GRAPH}__{plain}" if plain else ROOT_GRAPH)
        self._names[key] = name
        calls = trace_calls(module, name, shape)
        inputs = [node.target for node in calls.nodes if node.op == "placeholder"]
        graph = self._model.add_graph(name, map(str, inputs), [_OUTPUT])
        graph.python_name = python_name
        _GraphWriter(graph, module, self._operation).write(calls)
        return name

    def _free_name(self, name: str) -> str:
        taken = self._model.graphs
        free = (f"{name}_{number}" for number in range(1, len(taken) + 2))
        return name if name not in taken else next(one for one in free if one not in taken)

    def _operation(self, module: nn.Module, python_name: str, shape: CallShape) -> Operation:
        """Return a module's operation: of a choice, a unit, or a cell, whose graph is added."""
        form = _form_of(module, python_name)
        match form:
            case AlternativesForm(choice, candidates):
                return Operation.new(
                    LAYER_CHOICE,
                    {
                        "choice": choice,
                        "names": list(candidates),
                        "candidates": [
                            self._operation(one, f"{python_name}.{name}", shape)
                            for name, one in candidates.items()
                        ],
                    },
                )
            case SelectionForm(choice, n_candidates, reduction):
                return Operation.new(
                    INPUT_CHOICE,
                    {"choice": choice, "n_candidates": n_candidates, "reduction": reduction},
                )
            case RepetitionForm(depth, blocks):
                operations = [
                    self._operation(one, f"{python_name}.blocks.{index}", CallShape(1))
                    for index, one in enumerate(blocks)
                ]
                return Operation.new(REPEAT, {"depth": depth, "blocks": operations})
            case UnitForm(symbol, args, kwargs):
                return constructed(symbol, args, kwargs)
        if is_unit(module):
            return unit_operation(module)
        return Operation.new(CELL, cell_name=self._add_graph(module, python_name, shape))


class _GraphWriter:
    """Writer of the calls of one module into its graph."""

    def __init__(
        self,
        graph: Graph,
        module: nn.Module,
        operation_of: Callable[[nn.Module, str, CallShape], Operation],
    ) -> None:
        self._graph = graph
        self._module = module
        self._operation_of = operation_of
        self._ends: dict[fx.Node, tuple[Node, int | None]] = {}

    def write(self, calls: fx.Graph) -> None:
        """Write all calls as nodes and edges; raise IllegalGraphError for the module's own tensors.

        Args:
            calls: trace of the module.
        """
        for call in calls.nodes:
            match call.op:
                case "placeholder":
                    self._ends[call] = (self._graph.input_node, len(self._ends))
                case "output":
                    self._connect(self._graph.output_node, call.args, {})
                case "call_module":
                    self._write_module(call)
                case "call_function":
                    self._write_function(call, f"{FUNCTION_PREFIX}{function_name(call.target)}")
                case "call_method":
                    self._write_function(call, f"{METHOD_PREFIX}{call.target}")
                case _:
                    raise IllegalGraphError(
                        self._graph,
                        f"{type(self._module).__name__} uses its own tensor {call.target!r}, whose "
                        "value a graph does not hold; decorate the class with "
                        "nni.nas.utils.basic_unit, so that it is one node",
                    )

    def _write_module(self, call: fx.Node) -> None:
        module = self._module.get_submodule(str(call.target))
        prefix = f"{self._graph.python_name}." if self._graph.python_name else ""
        python_name = f"{prefix}{call.target}"
        shape = CallShape(len(call.args), tuple(call.kwargs))
        try:
            operation = self._operation_of(module, python_name, shape)
        except IllegalGraphError as error:
            raise IllegalGraphError(None, f"module {python_name!r}: {error}") from error
        node = self._graph.add_node(python_name, operation)
        node.python_name = python_name
        node.label = _label_of(module)
        self._connect(node, call.args, call.kwargs)
        self._ends[call] = (node, None)

    def _write_function(self, call: fx.Node, type_name: str) -> None:
        node = self._graph.add_node(call.name, Operation.new(type_name))
        self._connect(node, call.args, call.kwargs)
        node.operation = Operation.new(type_name, node.call)
        node.call = None
        self._ends[call] = (node, None)

    def _connect(self, node: Node, args: Any, kwargs: Any) -> None:  # noqa: ANN401 - of torch.fx
        """Add the edges of a call; keep its arguments if they are not just the inputs in order."""
        sources: list[tuple[Node, int | None]] = []

        def template(value: Any) -> Any:  # noqa: ANN401 - an argument
            match value:
                case fx.Node():
                    sources.append(self._ends[value])
                    return InputSlot(len(sources) - 1)
                case TrainingFlag():
                    return TrainingMode()
                case tuple():
                    return tuple(template(one) for one in value)
                case list():
                    return [template(one) for one in value]
                case dict():
                    return {key: template(one) for key, one in value.items()}
                case slice():
                    return slice(*map(template, (value.start, value.stop, value.step)))
            return value

        call = {"args": [template(one) for one in args], "kwargs": template(dict(kwargs))}
        if call["args"] != [InputSlot(index) for index in range(len(sources))] or kwargs:
            node.call = call
        for slot, source in enumerate(sources):
            self._graph.add_edge(source, (node, None if len(sources) == 1 else slot))


def _form_of(module: nn.Module, python_name: str) -> GraphForm | None:
    """Return a mutable module's graph form; None if it is no mutable, or a graph of its own."""
    ask: Callable[[], GraphForm | None] | None = getattr(module, "graph_form", None)
    if ask is None:
        return None
    try:
        return ask()
    except TypeError as error:
        place = f"module {python_name!r}: " if python_name else ""
        raise IllegalGraphError(None, f"{place}{error}") from error


def _label_of(module: nn.Module) -> str | None:
    """Return the label by which mutators find a module; None if it has none."""
    label = getattr(module, _LABEL, None)
    return str(label) if isinstance(label, str) else None
