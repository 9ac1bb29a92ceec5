"""One symbolic pass through a model space: the cost of each layer, as an expression of the labels.

The space's own `forward` runs on tensors without data. Layers that have a formula, and choices, are
diverted meanwhile: a choice runs all its candidates and combines their costs and shapes by the
label. No weight is read and no network is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from nni.mutable import Mutable, MutableExpression
from nni.mutable.errors import UndecidedError
from nni.mutable.expression import apply
from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, ModelSpace, MutableModule, Repeat
from nni.nas.profiler.pytorch.arguments import mutable_arguments
from nni.nas.profiler.pytorch.cases import (
    CannotProfileError,
    Number,
    added,
    leaves_of,
    same,
    switch,
    tabulated,
)
from nni.nas.profiler.pytorch.layer_formulas import SHAPE_FORMULAS, formula_of
from nni.nas.profiler.pytorch.shapes import (
    ShapeTensor,
    from_tensors,
    frozen_shapes,
    map_shapes,
    merged,
    shapes_in,
)

_LEAF = "_nni_profiler_leaf"
_TRANSPARENT = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class LayerCostFunction(Protocol):
    """Interface of functions that return the cost of one layer, a number or an expression.

    Examples:
        >>> def each_counts_one(module, inputs, output):
        ...     return 1
        >>> cost: LayerCostFunction = each_counts_one
    """

    def __call__(self, module: nn.Module, inputs: Sequence[Any], output: Any) -> Number:  # noqa: ANN401
        """Return the cost of a layer.

        Args:
            module: the layer.
            inputs: its inputs; tensors are `ShapeTensor`.
            output: its output.
        """
        ...


def mark_leaf(module_type: type[nn.Module]) -> type[nn.Module]:
    """Mark a class, whose modules are then one layer to profilers; return the class.

    Args:
        module_type: class of modules.

    Examples:
        >>> mark_leaf(type("Mine", (nn.Module,), {})).__name__
        'Mine'
    """
    setattr(module_type, _LEAF, True)
    return module_type


def example_shapes(args: Any) -> tuple[Any, ...]:  # noqa: ANN401 - tensors, nested
    """Return example inputs as a tuple, with shapes in place of tensors.

    Args:
        args: tensor, or tuple of inputs.

    Examples:
        >>> example_shapes(torch.zeros(1, 3))
        (ShapeTensor((1, 3)),)
    """
    given = args if isinstance(args, tuple) else (args,)
    return tuple(from_tensors(one) for one in given)


class CostTrace:
    """Symbolic pass of shapes through a network, which adds up the costs of its layers.

    Args:
        cost: cost of one layer.
        leaf_types: classes of modules that are one layer, besides those of torch.

    Examples:
        >>> trace = CostTrace(lambda module, inputs, output: 1)
        >>> trace.run(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), (ShapeTensor((1, 3)),))
        ShapeTensor((1, 4))
        >>> trace.total
        2
    """

    def __init__(
        self, cost: LayerCostFunction, *, leaf_types: tuple[type[nn.Module], ...] = ()
    ) -> None:
        self.total: Number = 0
        """Cost so far."""
        self._cost = cost
        self._leaf_types = leaf_types

    def run(self, module: nn.Module, inputs: Sequence[Any]) -> Any:  # noqa: ANN401 - what it returns
        """Run a module on inputs without data, adding its cost to the total; return its output.

        Args:
            module: network or model space.
            inputs: its inputs; tensors are `ShapeTensor`.

        Raises:
            CannotProfileError: a layer or a function has no formula, or a `forward` branches on a
                mutable size.
        """
        try:
            with _diverted(module, self._handler):
                return module(*inputs)
        except UndecidedError as error:
            raise CannotProfileError(
                f"{type(module).__name__} has a module whose forward branches on a mutable size, "
                "so it cannot be profiled as a whole; profile each model: "
                "count_flops_params(model.executable_model(), images)"
            ) from error

    def _handler(self, module: nn.Module) -> Callable[..., Any] | None:
        """Return the replacement of a module's `forward`; None: keep its own."""
        match module:
            case LayerChoice():
                return partial(self._layer_choice, module)
            case InputChoice():
                return partial(_input_choice, module)
            case Repeat():
                return partial(self._repeat, module)
            case Cell() if module.merge_op == "loose_end" and _is_open(module):
                return partial(self._loose_cell, module)
            case Cell() | ModelSpace():
                return None
        if hasattr(module, "_shape_forward") or formula_of(module, SHAPE_FORMULAS) is not None:
            return partial(self._layer, module)
        if isinstance(module, self._leaf_types):
            return partial(self._layer, module)
        if isinstance(module, MutableModule) and (module.mutables or mutable_arguments(module)):
            return partial(self._enumerated, module)
        if isinstance(module, _TRANSPARENT):
            return None
        is_torch = type(module).__module__.startswith("torch.nn.")
        return partial(self._layer, module) if is_torch or hasattr(module, _LEAF) else None

    def _layer(self, module: nn.Module, *inputs: Any, **options: Any) -> Any:  # noqa: ANN401 - of any layer
        given = (*inputs, *options.values())
        with _own_forward(module):
            output = _output_of(module, inputs, options)
            self.total = added(self.total, self._cost(module, given, output))
        return output

    def _scoped(self, function: Callable[[], Any]) -> tuple[Number, Any]:
        """Return the cost that a function adds, which is then not in the total, and its result."""
        before, self.total = self.total, 0
        try:
            result = function()
            return self.total, result
        finally:
            self.total = before

    def _layer_choice(self, module: LayerChoice, *inputs: Any, **options: Any) -> Any:  # noqa: ANN401
        costs, outputs = {}, []
        for name in module.names:
            costs[name], output = self._scoped(partial(module[name], *inputs, **options))
            outputs.append(output)
        self.total = added(self.total, switch(module.choice, costs))
        return merged(
            outputs, lambda sizes: switch(module.choice, dict(zip(costs, sizes, strict=True)))
        )

    def _repeat(self, module: Repeat, inputs: Any) -> Any:  # noqa: ANN401 - what blocks take
        depth = module.depth_choice
        cost: Number = 0
        costs, outputs = {0: cost}, {0: inputs}
        for index, block in enumerate(module.blocks, start=1):
            own, inputs = self._scoped(partial(block, inputs))
            cost = added(cost, own)
            costs[index], outputs[index] = cost, inputs
        if not isinstance(depth, MutableExpression):
            self.total = added(self.total, costs[depth])
            return outputs[depth]
        depths = range(module.min_depth, module.max_depth + 1)
        self.total = added(self.total, switch(depth, {one: costs[one] for one in depths}))
        return merged(
            [outputs[one] for one in depths],
            lambda sizes: switch(depth, dict(zip(depths, sizes, strict=True))),
        )

    def _loose_cell(self, cell: Cell, *inputs: Any) -> Any:  # noqa: ANN401 - as Cell.forward
        """Return the output shape of a cell that concatenates the nodes which no choice reads."""
        given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
        processed = list(cell.preprocessor(list(given)))
        states: list[ShapeTensor] = list(processed)
        choices: list[InputChoice] = []
        for operators, connections in zip(cell.ops, cell.inputs, strict=True):
            assert isinstance(operators, nn.ModuleList)
            assert isinstance(connections, nn.ModuleList)
            outputs = [
                operator(one(states)) for operator, one in zip(operators, connections, strict=True)
            ]
            choices += [one for one in connections if isinstance(one, InputChoice)]
            states.append(sum(outputs[1:], outputs[0]))
        first = cell.num_predecessors
        total: Number = 0
        for node in range(first, len(states)):
            read = apply(_contains_any, [node, *(one.choice for one in choices)])
            size = states[node].shape[cell.concat_dim]
            total = added(total, MutableExpression.condition(read, 0, size))
        shape = list(states[-1].shape)
        shape[cell.concat_dim] = total
        output = ShapeTensor(shape, states[-1].dtype)
        return output if cell.postprocessor is None else cell.postprocessor(output, processed)

    def _enumerated(self, module: MutableModule, *inputs: Any, **options: Any) -> Any:  # noqa: ANN401
        """Trace a module per combination, add its costs as a table; return the common output."""
        sizes = [size for one in shapes_in((inputs, options)) for size in one.shape]
        leaves = leaves_of([module, *sizes])
        outputs: list[Any] = []

        def built(sample: dict[str, Any]) -> Number:
            with _own_forward(module):
                network = module.freeze(sample)
            given, named = frozen_shapes((inputs, options), sample)
            trace = CostTrace(self._cost, leaf_types=self._leaf_types)
            with _diverted(network, trace._handler):
                outputs.append(network(*given, **named))
            return trace.total

        reason = f"{type(module).__name__} has no formula"
        self.total = added(self.total, tabulated(leaves, built, reason=reason))
        if not all(same([one.shape for one in parts]) for parts in _parallel(outputs)):
            raise CannotProfileError(
                f"{reason}, and the shape of its output depends on {', '.join(leaves)}; give it a "
                "method _shape_forward, or register_shape_inference_formula for its class"
            )
        return outputs[0]


def _parallel(outputs: Sequence[Any]) -> Iterator[tuple[ShapeTensor, ...]]:
    return zip(*(shapes_in(one) for one in outputs), strict=True)


def _is_open(cell: Cell) -> bool:
    return any(isinstance(one, InputChoice) for one in cell.inputs.modules())


def _contains_any(node: int, *chosen: Sequence[int]) -> bool:
    return any(node in one for one in chosen)


def _input_choice(module: InputChoice, candidate_inputs: Sequence[ShapeTensor]) -> Any:  # noqa: ANN401
    """Return the output shape of an input choice; sizes that differ by input are expressions."""
    chosen, candidates = module.choice, list(candidate_inputs)

    def picked(position: int) -> Any:  # noqa: ANN401 - as the candidates
        return merged(candidates, lambda sizes: switch(chosen[position], dict(enumerate(sizes))))

    if module.reduction == "none":
        if module.n_chosen is None:
            raise CannotProfileError(
                f"{str(module.label)!r} returns a list of an unknown length; n_chosen must be a "
                "number to be profiled"
            )
        return [picked(position) for position in range(module.n_chosen)]
    if module.reduction == "concat" and module.n_chosen != 1:
        total: Number = 0
        for index, one in enumerate(candidates):
            read = apply(_contains_any, [index, chosen])
            total = added(total, MutableExpression.condition(read, one.shape[1], 0))
        shape = candidates[0].shape
        return ShapeTensor((shape[0], total, *shape[2:]), candidates[0].dtype)
    return picked(0)


def _output_of(module: nn.Module, inputs: Sequence[Any], options: dict[str, Any]) -> Any:  # noqa: ANN401
    own = getattr(module, "_shape_forward", None)
    if own is not None:
        return own(*inputs, **options)
    formula = formula_of(module, SHAPE_FORMULAS)
    if formula is not None:
        return formula(module, *inputs, **options)
    sizes = [size for one in shapes_in((inputs, options)) for size in one.shape]
    if any(isinstance(size, Mutable) for size in sizes):
        raise CannotProfileError(
            f"{type(module).__name__} has no shape formula, and its input has mutable sizes; "
            f"register_shape_inference_formula({type(module).__name__}, function)"
        )
    return _meta_output(module, inputs, options)


def _meta_output(module: nn.Module, inputs: Sequence[Any], options: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the shapes of a module's own forward, run without memory for weights or data."""
    parameters: dict[str, Tensor] = {
        name: torch.empty_like(one, device="meta")
        for name, one in (*module.named_parameters(), *module.named_buffers())
    }
    given, named = map_shapes(
        (tuple(inputs), options),
        lambda one: torch.empty(one.shape, dtype=one.dtype, device="meta"),
    )
    with torch.no_grad():
        return from_tensors(torch.func.functional_call(module, parameters, given, named))


@contextmanager
def _own_forward(root: nn.Module) -> Iterator[None]:
    """Within a block, restore `forward` of a module and those inside, for a run or a copy."""
    paused = [
        (module, vars(module).pop("forward"))
        for module in root.modules()
        if "forward" in vars(module)
    ]
    try:
        yield
    finally:
        for module, handle in paused:
            vars(module)["forward"] = handle


@contextmanager
def _diverted(
    root: nn.Module, handler: Callable[[nn.Module], Callable[..., Any] | None]
) -> Iterator[None]:
    """Within a block, run handlers in place of the `forward` of a module and those inside."""
    diverted = []
    try:
        for module in root.modules():
            handle = handler(module)
            if handle is not None and "forward" not in vars(module):
                vars(module)["forward"] = handle  # an instance's attribute precedes the method
                diverted.append(module)
        yield
    finally:
        for module in diverted:
            del vars(module)["forward"]
