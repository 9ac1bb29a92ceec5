"""Formulas of torch's recurrent layers and cells: shapes of the outputs, and FLOPs.

Source: pytorch-OpCounter (thop), `rnn_hooks.py`. One step of a layer with g gates, input width i,
hidden width h and output width o costs g (h (i + o) + h), for the two products of each gate and
their sum; 2 g h with biases; 4 h for the products of gates in LSTM and GRU.

Departures: each gate's activation, and the one of an LSTM's cell state, costs h; a projection of an
LSTM (`proj_size`) costs h o.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from nni.mutable.expression import apply
from nni.nas.profiler.pytorch.arguments import argument
from nni.nas.profiler.pytorch.cases import Number
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.shapes import ShapeTensor

_UNBATCHED = 2
"""Dimensions of an input without a batch: steps and features."""


def recurrent_shape(module: Any, source: ShapeTensor, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - layer, states
    """Return the shapes of a recurrent layer's output and of its last states.

    Args:
        module: LSTM, GRU or RNN.
        source: `(steps, batch, features)`, `(batch, steps, features)` with `batch_first`, or
            `(steps, features)`.

    Examples:
        >>> recurrent_shape(nn.GRU(4, 8), ShapeTensor((5, 2, 4)))
        (ShapeTensor((5, 2, 8)), ShapeTensor((1, 2, 8)))
    """
    directions, width = _directions(module), _output_width(module)
    layers = argument(module, "num_layers") * directions
    batch = [source.shape[0 if module.batch_first else 1]] if source.ndim > _UNBATCHED else []
    output = ShapeTensor((*source.shape[:-1], width * directions))
    state = ShapeTensor((layers, *batch, width))
    if not isinstance(module, nn.LSTM):
        return output, state
    return output, (state, ShapeTensor((layers, *batch, argument(module, "hidden_size"))))


def cell_shape(module: Any, source: ShapeTensor, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - cell, states
    """Return the shape of a recurrent cell's hidden state; for an LSTM cell, of both states.

    Args:
        module: LSTMCell, GRUCell or RNNCell.
        source: `(batch, features)` or `(features,)`.

    Examples:
        >>> cell_shape(nn.GRUCell(4, 8), ShapeTensor((2, 4)))
        ShapeTensor((2, 8))
    """
    state = ShapeTensor((*source.shape[:-1], argument(module, "hidden_size")))
    return (state, state) if isinstance(module, nn.LSTMCell) else state


def recurrent_flops(
    module: Any,  # noqa: ANN401 - layer
    inputs: Sequence[Any],
    _: Any,  # noqa: ANN401 - output
    config: FlopsParamsCounterConfig,
) -> Number:
    """Return the FLOPs of a recurrent layer for all steps of one sequence.

    Args:
        module: LSTM, GRU or RNN.
        inputs: the sequences first.
        config: what is counted.

    Examples:
        >>> from nni.nas.profiler.pytorch import FlopsParamsCounterConfig
        >>> recurrent_flops(
        ...     nn.RNN(4, 8), [ShapeTensor((5, 2, 4))], None, FlopsParamsCounterConfig()
        ... )
        640
    """
    source = inputs[0]
    steps = source.shape[1 if source.ndim > _UNBATCHED and module.batch_first else 0]
    directions, width = _directions(module), _output_width(module)
    first = _step_flops(module, argument(module, "input_size"), config)
    further = _step_flops(module, width * directions, config)
    return steps * directions * (first + (argument(module, "num_layers") - 1) * further)


def cell_flops(
    module: Any,  # noqa: ANN401 - cell
    _: Sequence[Any],
    __: Any,  # noqa: ANN401 - output
    config: FlopsParamsCounterConfig,
) -> Number:
    """Return the FLOPs of one step of a recurrent cell.

    Args:
        module: LSTMCell, GRUCell or RNNCell.
        config: what is counted.

    Examples:
        >>> from nni.nas.profiler.pytorch import FlopsParamsCounterConfig
        >>> cell_flops(nn.RNNCell(4, 8), [], None, FlopsParamsCounterConfig())
        128
    """
    return _step_flops(module, argument(module, "input_size"), config)


def _step_flops(module: nn.Module, inputs: Number, config: FlopsParamsCounterConfig) -> Number:
    is_lstm = isinstance(module, nn.LSTM | nn.LSTMCell)
    gates = 4 if is_lstm else 3 if isinstance(module, nn.GRU | nn.GRUCell) else 1
    hidden, width = argument(module, "hidden_size"), _output_width(module)
    products = gates * hidden * (inputs + width + 1)
    biases = 2 * gates * hidden * _flag(module, "bias") if config.count_bias else 0
    of_gates = 4 * hidden if gates > 1 else 0
    activations = (gates + is_lstm) * hidden if config.count_activation else 0
    projection = hidden * _projected(module)
    return products + biases + of_gates + activations + projection


def _directions(module: nn.Module) -> Number:
    return 1 + _flag(module, "bidirectional")


def _flag(module: nn.Module, name: str) -> Number:
    return apply(int, [argument(module, name)], "int({})")


def _projected(module: nn.Module) -> Number:
    """Return the width of an LSTM's projection, 0 without one."""
    return argument(module, "proj_size") if isinstance(module, nn.RNNBase) else 0


def _output_width(module: nn.Module) -> Number:
    return apply(_first_positive, [_projected(module), argument(module, "hidden_size")])


def _first_positive(projected: int, hidden: int) -> int:
    return projected or hidden
