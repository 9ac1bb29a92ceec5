"""Search for batch norms that directly follow a convolution, by one recorded run of a model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from nni.compression.base.folding import folding_problem, is_batch_norm
from nni.compression.base.model_runs import call_model, eval_mode

_LAYERS: Final = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def batch_norm_pairs(model: nn.Module, dummy_input: object) -> list[tuple[str, str]]:
    """Run a model; return names of convolutions and batch norms that alone consume them.

    The model runs once in eval mode and without gradients; modes and statistics are as before.
    Layers and norms that run several times are left out.

    Args:
        model: an unwrapped model.
        dummy_input: input of the model; a tuple or list for several, a dict for named ones.

    Returns:
        Dotted names of convolution and batch norm, in the order of the run.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
        >>> batch_norm_pairs(model, torch.zeros(1, 1, 4, 4))
        [('0', '1')]
    """
    names = {id(module): name for name, module in model.named_modules()}
    record = _Record()
    with _hooks(model, record), eval_mode(model), torch.no_grad(), _UseCounter(record):
        record.count_uses(call_model(model, dummy_input))
    return [
        (names[id(layer)], names[id(norm)])
        for layer, norm in record.pairs()
        if folding_problem(layer, (norm,)) is None
    ]


@dataclass(slots=True)
class _Record:
    """Outputs of convolutions and their consumers, in one run."""

    outputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    norms: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    uses: dict[int, int] = field(default_factory=dict)
    """Number of functions that computed with a tensor, by its id; `outputs` keeps it alive."""

    def count_uses(self, value: object) -> None:
        """Count one use of each output of a convolution that a value holds."""
        watched = {id(tensor) for _, tensor in self.outputs}
        for one in {id(part) for part in _flat(value)} & watched:
            self.uses[one] = self.uses.get(one, 0) + 1

    def pairs(self) -> Iterator[tuple[nn.Module, nn.Module]]:
        for layer, output in self.outputs:
            norms = [norm for norm, value in self.norms if value is output]
            if len(norms) == 1 and self.uses.get(id(output)) == 1 and self._once(layer, norms[0]):
                yield layer, norms[0]

    def _once(self, layer: nn.Module, norm: nn.Module) -> bool:
        return (
            sum(one is layer for one, _ in self.outputs) == 1
            and sum(one is norm for one, _ in self.norms) == 1
        )


class _UseCounter(TorchFunctionMode):
    """Mode of torch functions that counts those that get the outputs of convolutions."""

    def __init__(self, record: _Record) -> None:
        super().__init__()
        self._record = record

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        result = func(*args, **(kwargs or {}))
        if any(isinstance(one, Tensor) for one in _flat(result)):  # a look at the shape is no use
            self._record.count_uses((args, kwargs or {}))
        return result


def _flat(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for one in value:
            yield from _flat(one)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    else:
        yield value


@contextmanager
def _hooks(model: nn.Module, record: _Record) -> Iterator[None]:
    def after(module: nn.Module, _args: object, output: object) -> None:
        if isinstance(output, Tensor):
            record.outputs.append((module, output))

    def before(module: nn.Module, args: tuple[object, ...]) -> None:
        if args and isinstance(args[0], Tensor):
            record.norms.append((module, args[0]))

    handles: list[RemovableHandle] = []
    for module in model.modules():
        if isinstance(module, _LAYERS):
            handles.append(module.register_forward_hook(after))
        elif is_batch_norm(module):
            handles.append(module.register_forward_pre_hook(before))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
