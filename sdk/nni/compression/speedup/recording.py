"""Recording of the operations of a model by one run.

The run passes every operation through the dispatcher of torch, so the graph holds the same ATen
operations that `torch.export` produces, for models whose Python code cannot be exported as well.
Nothing is compiled or scripted. The values of the run are not kept; shapes, attributes, parameters
and module paths are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nni.compression.speedup.graph import Inputs, Node, OperationGraph, Ref, Value
from nni.compression.speedup.running import module_stack, run, tensors_in, unchanged
from nni.compression.speedup.size_arguments import SizedCall, is_sized, plain_slices


@dataclass(frozen=True, slots=True)
class _Signature:
    """Name, elementwise flag and arguments of an operation, from its schema."""

    op: str
    pointwise: bool
    arguments: tuple[tuple[str, Any], ...]
    """Names and defaults."""


@cache
def _signature(func: Any) -> _Signature:  # noqa: ANN401 - operations of torch
    """Return the signature of an operation, cached, since torch builds it at each call."""
    arguments = func._schema.arguments  # noqa: SLF001 - torch's own API
    return _Signature(
        str(func.overloadpacket),
        torch.Tag.pointwise in func.tags,
        tuple((one.name, one.default_value) for one in arguments),
    )


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that appends each operation to a graph."""

    def __init__(self, graph: OperationGraph, names: Mapping[int, str], stack: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = graph
        self._names = names
        self._stack = stack
        self._indices: dict[int, int] = {}
        self._alive: list[Tensor] = []  # an id is unique only as long as its tensor is alive

    def value_of(self, tensor: Tensor) -> int:
        """Return the index of a tensor; add the tensor to the graph if it is new."""
        found = self._indices.get(id(tensor))
        return self._add(tensor, computed=False) if found is None else found

    def _add(self, tensor: Tensor, *, computed: bool) -> int:
        index = len(self.graph.values)
        name = None if computed else self._names.get(id(tensor))
        floating = tensor.is_floating_point() or tensor.is_complex()
        value = Value(index, tuple(tensor.shape), floating, name, computed)
        if not floating and name is None and not computed:
            value.data = tensor.detach()
        self.graph.values.append(value)
        self._indices[id(tensor)] = index
        self._alive.append(tensor)
        return index

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        signature = _signature(func)
        named = self._named(signature, args, kwargs or {})
        output = func(*args, **(kwargs or {}))
        found = output if isinstance(output, list | tuple) else [output]
        outputs = [self._output(tensor) for tensor in found if isinstance(tensor, Tensor)]
        where = self._stack[-1] if self._stack else ""
        node = Node(len(self.graph.nodes), signature.op, named, outputs, where, signature.pointwise)
        self.graph.nodes.append(node)
        return output

    def _output(self, tensor: Tensor) -> int:
        """Return the value of an output: a new one, or the one that was changed in place.

        An operation such as `transpose_` gives a tensor another shape; that is a new value, too.
        """
        found = self._indices.get(id(tensor))
        if found is None or self.graph.values[found].shape != tuple(tensor.shape):
            return self._add(tensor, computed=True)
        return found

    def _named(
        self, signature: _Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place, (name, default) in enumerate(signature.arguments):
            value = args[place] if place < len(args) else kwargs.get(name, default)
            found[name] = self._referenced(value)
        return found

    def _referenced(self, value: Any) -> Any:  # noqa: ANN401 - arguments of any type
        if isinstance(value, Tensor):
            return Ref(self.value_of(value))
        if isinstance(value, list | tuple):
            return [self._referenced(one) for one in value]
        return value


class _CallRecorder(TorchFunctionMode):
    """Function mode that adds to a graph each call that takes sizes, such as `view`."""

    def __init__(self, graph: OperationGraph, recorder: _Recorder, stack: list[str]) -> None:
        super().__init__()
        self._graph = graph
        self._recorder = recorder
        self._stack = stack

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        modules = tuple(self._stack)
        output = func(*args, **(kwargs or {}))
        if is_sized(func):
            values = tuple(self._recorder.value_of(one) for one in tensors_in(output))
            call = SizedCall(func.__name__, modules, values)
            if func.__name__ == "__getitem__":
                slices = plain_slices(args[1], args[0].dim())
                call = replace(call, source=self._recorder.value_of(args[0]), slices=slices)
            self._graph.calls.append(call)
        return output


def capture(model: nn.Module, inputs: Inputs) -> OperationGraph:
    """Run a model once, leaving it unchanged; return the graph of its operations.

    The model is the same afterwards: flags, buffers and cached attributes are restored. If
    parameters are left that the run did not use, a second run in training mode is recorded too, as
    auxiliary classifiers take part in training only. Norms and dropout are in eval mode then.

    Args:
        model: The model; it runs in eval mode without gradients.
        inputs: Example inputs: a tensor, a list or tuple, or a dict by name.

    Returns:
        The operations, values, inputs and outputs of the run.

    Examples:
        >>> import torch
        >>> from nni.compression.speedup.recording import capture
        >>> graph = capture(torch.nn.Linear(4, 2), torch.zeros(1, 4))
        >>> [node.op for node in graph.nodes], sorted(graph.sources)
        (['aten.t', 'aten.addmm'], ['bias', 'weight'])
    """
    graph = OperationGraph()
    stack: list[str] = []
    names = {id(tensor): name for name, tensor in model.named_buffers(remove_duplicate=False)}
    names |= {id(tensor): name for name, tensor in model.named_parameters()}
    recorder = _Recorder(graph, names, stack)
    graph.inputs = [recorder.value_of(tensor) for tensor in tensors_in(inputs)]
    calls = _CallRecorder(graph, recorder, stack)
    running = module_stack(model, stack, graph.runs)
    with unchanged(model), running, recorder, calls:
        output = run(model, inputs)
    graph.outputs = [recorder.value_of(tensor) for tensor in tensors_in(output)]
    if len(_used_parameters(model, graph)) < len(list(model.parameters())):
        _record_training_heads(model, inputs, recorder, stack)
    return graph


def _used_parameters(model: nn.Module, graph: OperationGraph) -> set[str]:
    return {name for name, _ in model.named_parameters()} & graph.sources.keys()


def _record_training_heads(
    model: nn.Module, inputs: Inputs, recorder: _Recorder, stack: list[str]
) -> None:
    """Append a run with the heads of training, if it uses further parameters."""
    graph = recorder.graph
    used, values, nodes = _used_parameters(model, graph), len(graph.values), len(graph.nodes)
    stack.clear()
    try:
        with (
            unchanged(model, training_heads=True), module_stack(model, stack), recorder,
            torch.random.fork_rng(devices=[]),
        ):  # fmt: skip
            outputs = tensors_in(run(model, inputs))
    except Exception:  # noqa: BLE001 - code of users raises anything, as with one example only
        outputs = []
    graph.training_heads = bool(outputs) and _used_parameters(model, graph) > used
    if graph.training_heads:
        graph.outputs += [recorder.value_of(tensor) for tensor in outputs]
    else:
        del graph.values[values:], graph.nodes[nodes:]
