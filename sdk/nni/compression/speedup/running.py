"""Runs of a model that restore its state afterwards."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as module_hooks
from torch.utils import _pytree as pytree

from nni.compression.speedup.graph import Inputs, OperationGraph
from nni.compression.speedup.index_bounds import checked_indices


def run(model: nn.Module, inputs: Inputs) -> Any:  # noqa: ANN401 - a model returns what it likes
    """Run a model on a tensor, on a list or tuple of arguments, or on a dict; return the output.

    Raises:
        IndexError: an index is out of bounds, on whatever device.
    """
    with checked_indices(model):
        if isinstance(inputs, Mapping):
            return model(**inputs)
        if isinstance(inputs, list | tuple):
            return model(*inputs)
        return model(inputs)


def tensors_in(value: object) -> list[Tensor]:
    """Return the tensors in nested lists, dicts, pytree containers and dataclasses, in order."""
    return [leaf for leaf in _leaves(value) if isinstance(leaf, Tensor)]


def _leaves(value: object) -> Iterator[object]:
    for leaf in pytree.tree_leaves(value):
        if hasattr(leaf, "__dataclass_fields__") and not isinstance(leaf, type):
            for name in leaf.__dataclass_fields__:
                yield from _leaves(getattr(leaf, name))
        else:
            yield leaf


@contextmanager
def module_stack(
    model: nn.Module,
    stack: list[str],
    runs: dict[str, int] | None = None,
    *,
    after_errors: bool = True,
) -> Iterator[None]:
    """Within a block, keep the paths of running modules on a stack, and count their runs.

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
        known = names.get(id(module))
        stack.append(known if known is not None else stack[-1] if stack else "")
        if runs is not None and known is not None:
            runs[known] = runs.get(known, 0) + 1
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
def unchanged(model: nn.Module, *, training_heads: bool = False) -> Iterator[None]:
    """Within a block, use eval mode without gradients; then restore flags, buffers, attributes.

    Products are computed in full float32 meanwhile: TF32, which convolutions on a GPU use by
    default, has 10 bits, so that its rounding looks like a change of the function.

    Args:
        model: The model.
        training_heads: Whether modules that have modules of their own, beside those of
            `torch.nn`, are in training mode: this runs heads that only training uses, while norms
            and dropout work as in eval mode.
    """
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
    convolutions, matrices = torch.backends.cudnn, torch.backends.cuda.matmul
    coarse = convolutions.allow_tf32, matrices.allow_tf32
    convolutions.allow_tf32 = matrices.allow_tf32 = False
    try:
        for module in modules:
            module.training = training_heads and _may_have_heads(module)
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        convolutions.allow_tf32, matrices.allow_tf32 = coarse
        for module, saved in zip(modules, attributes, strict=True):
            module.__dict__.clear()
            module.__dict__.update(saved)
        for container, content in containers:
            _refill(container, content)
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)


def _refill(container: dict[Any, Any] | list[Any], content: Any) -> None:  # noqa: ANN401 - the same
    """Replace the content of a dict or list by a former one, in place."""
    container.clear()
    if isinstance(container, dict):
        container.update(content)
    else:
        container.extend(content)


def _may_have_heads(module: nn.Module) -> bool:
    return bool(module._modules) and not type(module).__module__.startswith("torch.nn.")  # noqa: SLF001


def run_recorded(
    model: nn.Module, inputs: Inputs, graph: OperationGraph, mode: AbstractContextManager[object]
) -> None:
    """Repeat the recorded runs of a model: in eval mode, then with its training heads.

    Args:
        model: The model; it is the same afterwards.
        inputs: Its inputs.
        graph: The recorded runs.
        mode: Context of each run, such as a dispatch mode.
    """
    with unchanged(model), mode:
        run(model, inputs)
    if graph.training_heads:
        with unchanged(model, training_heads=True), mode:
            run(model, inputs)
