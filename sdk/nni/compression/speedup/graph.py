"""OperationGraph of the operations of a model, recorded by one run.

The run passes every operation through the dispatcher of torch, so the graph holds the same ATen
operations that `torch.export` produces, for models whose Python code cannot be exported as well.
Nothing is compiled or scripted. The values of the run are not kept; shapes, attributes, parameters
and module paths are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as module_hooks
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from nni.compression.speedup.size_arguments import SizedCall, is_sized

Inputs = Tensor | Sequence[Any] | Mapping[str, Any]
"""One tensor, positional inputs, or inputs by name."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to a value of the graph in the arguments of a node."""

    index: int


@dataclass(slots=True)
class Value:
    """Tensor of the recorded run."""

    index: int
    shape: tuple[int, ...]
    floating: bool
    source: str | None = None
    """Name of the parameter or buffer, None for other tensors."""
    computed: bool = False
    """Whether a node writes the value; otherwise it is a parameter, a constant or an input."""
    data: Tensor | None = None
    """The integer tensor of a constant, which index operations read."""


@dataclass(slots=True)
class Node:
    """Operation of the recorded run."""

    index: int
    op: str
    """Qualified name of the operation without its overload, such as `aten.add`."""
    args: dict[str, Any]
    """Arguments by their names in the schema, defaults included; tensors are `Ref`."""
    outputs: list[int]
    module: str
    """Path of the innermost module whose forward was running."""
    pointwise: bool = False
    """Whether each output element depends on the input elements at its place only."""

    def inputs(self) -> Iterator[int]:
        """Yield the values among the arguments, in order."""
        for value in self.args.values():
            yield from _refs(value)

    def describe(self) -> str:
        """Return the operation and its module for a message."""
        return f"{self.op.removeprefix('aten.')} in {self.module or 'the model itself'}"


def _refs(value: object) -> Iterator[int]:
    if isinstance(value, Ref):
        yield value.index
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _refs(one)


@dataclass(slots=True)
class OperationGraph:
    """Operations of a model in the order of their execution."""

    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    """Values that the model returns."""
    inputs: list[int] = field(default_factory=list)
    calls: list[SizedCall] = field(default_factory=list)
    """Calls that take sizes, in the order of their execution."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often each module ran."""

    @property
    def sources(self) -> dict[str, int]:
        """Return the values of parameters and buffers by name."""
        return {value.source: value.index for value in self.values if value.source is not None}


def run(model: nn.Module, inputs: Inputs) -> Any:  # noqa: ANN401 - a model returns what it likes
    """Return the output of a model for inputs in any of the accepted forms."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, list | tuple):
        return model(*inputs)
    return model(inputs)


def tensors_in(value: object) -> list[Tensor]:
    """Return the tensors in nested lists, dicts and registered containers, in order."""
    return [leaf for leaf in _leaves(value) if isinstance(leaf, Tensor)]


def _leaves(value: object) -> Iterator[object]:
    for leaf in pytree.tree_leaves(value):
        if hasattr(leaf, "__dataclass_fields__") and not isinstance(leaf, type):
            for name in leaf.__dataclass_fields__:
                yield from _leaves(getattr(leaf, name))
        else:
            yield leaf


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that appends each operation to a graph."""

    def __init__(self, graph: OperationGraph, names: Mapping[int, str], stack: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._graph = graph
        self._names = names
        self._stack = stack
        self._indices: dict[int, int] = {}
        self._alive: list[Tensor] = []  # an id is unique only as long as its tensor is alive

    def value_of(self, tensor: Tensor) -> int:
        """Return the index of a tensor; add the tensor to the graph if it is new."""
        found = self._indices.get(id(tensor))
        return self._add(tensor, computed=False) if found is None else found

    def _add(self, tensor: Tensor, *, computed: bool) -> int:
        index = len(self._graph.values)
        name = None if computed else self._names.get(id(tensor))
        floating = tensor.is_floating_point() or tensor.is_complex()
        value = Value(index, tuple(tensor.shape), floating, name, computed)
        if not floating and name is None and not computed:
            value.data = tensor.detach()
        self._graph.values.append(value)
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
        named = self._named(func, args, kwargs or {})
        output = func(*args, **(kwargs or {}))
        found = output if isinstance(output, list | tuple) else [output]
        outputs = [self._output(tensor) for tensor in found if isinstance(tensor, Tensor)]
        op = str(func.overloadpacket)
        where = self._stack[-1] if self._stack else ""
        pointwise = torch.Tag.pointwise in func.tags
        node = Node(len(self._graph.nodes), op, named, outputs, where, pointwise)
        self._graph.nodes.append(node)
        return output

    def _output(self, tensor: Tensor) -> int:
        """Return the value of an output: a new one, or the one that was changed in place.

        An operation such as `transpose_` gives a tensor another shape; that is a new value, too.
        """
        found = self._indices.get(id(tensor))
        if found is None or self._graph.values[found].shape != tuple(tensor.shape):
            return self._add(tensor, computed=True)
        return found

    def _named(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
        found: dict[str, Any] = {}
        for place, argument in enumerate(func._schema.arguments):  # noqa: SLF001 - torch's own API
            if place < len(args):
                value = args[place]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            else:
                value = argument.default_value
            found[argument.name] = self._referenced(value)
        return found

    def _referenced(self, value: Any) -> Any:  # noqa: ANN401 - arguments of any type
        if isinstance(value, Tensor):
            return Ref(self.value_of(value))
        if isinstance(value, list | tuple):
            return [self._referenced(one) for one in value]
        return value


class _CallRecorder(TorchFunctionMode):
    """Function mode that appends each call with sizes to a graph."""

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
            self._graph.calls.append(SizedCall(func.__name__, modules, values))
        return output


@contextmanager
def module_stack(
    model: nn.Module,
    stack: list[str],
    runs: dict[str, int] | None = None,
    *,
    after_errors: bool = True,
) -> Iterator[None]:
    """Keep the paths of the modules that run on a stack, and count their runs.

    Recurrent modules run without fused kernels meanwhile, so that their gates are operations.

    Args:
        model: The model.
        stack: List for the paths, outermost first.
        runs: Dict for the number of runs by path.
        after_errors: Whether a module that raised an error leaves the stack.
    """
    names = {id(module): name for name, module in model.named_modules()}
    fused: bool = torch._C._get_mkldnn_enabled()  # noqa: SLF001 - as torch.backends.mkldnn does
    set_fused: Callable[[bool], None] = torch._C._set_mkldnn_enabled  # noqa: SLF001

    def enter(module: nn.Module, _inputs: object) -> None:
        stack.append(names.get(id(module), stack[-1] if stack else ""))
        if runs is not None:
            runs[stack[-1]] = runs.get(stack[-1], 0) + 1
        if isinstance(module, nn.RNNBase) and fused:
            set_fused(False)

    def leave(module: nn.Module, _inputs: object, _output: object) -> None:
        stack.pop()
        if isinstance(module, nn.RNNBase) and fused:
            set_fused(True)

    with ExitStack() as exits:
        before = module_hooks.register_module_forward_pre_hook(enter)
        exits.callback(before.remove)
        after = module_hooks.register_module_forward_hook(leave, always_call=after_errors)
        exits.callback(after.remove)
        exits.callback(set_fused, fused)
        yield


@contextmanager
def unchanged(model: nn.Module, *, training: bool = False) -> Iterator[None]:
    """Switch the mode of all modules; restore flags, buffers and attributes at the end."""
    modules = list(model.modules())
    attributes = [dict(module.__dict__) for module in modules]
    containers = [
        (value, copy.copy(value))
        for saved in attributes
        for value in saved.values()
        if type(value) in {dict, list}
    ]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        for module in modules:
            module.training = training
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, saved in zip(modules, attributes, strict=True):
            module.__dict__.clear()
            module.__dict__.update(saved)
        for container, content in containers:
            _refill(container, content)
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)


def _refill(container: dict[Any, Any] | list[Any], content: Any) -> None:  # noqa: ANN401 - the same
    """Give a container its former content; registries of modules and caches are such."""
    container.clear()
    if isinstance(container, dict):
        container.update(content)
    else:
        container.extend(content)


def capture(model: nn.Module, inputs: Inputs, *, training: bool = False) -> OperationGraph:
    """Return the graph of one run of a model.

    The model is the same afterwards: flags, buffers and cached attributes are restored.

    Args:
        model: The model; it runs in eval mode without gradients.
        inputs: Example inputs: a tensor, a list or tuple, or a dict by name.
        training: Run in training mode, which records heads that eval mode skips.

    Returns:
        The operations, values, inputs and outputs of the run.

    Examples:
        >>> import torch
        >>> from nni.compression.speedup.graph import capture
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
    with unchanged(model, training=training), running, recorder, calls:
        output = run(model, inputs)
    graph.outputs = [recorder.value_of(tensor) for tensor in tensors_in(output)]
    return graph
