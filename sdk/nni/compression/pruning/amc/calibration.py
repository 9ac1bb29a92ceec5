"""Weights that are fitted again after some inputs of a layer are gone."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import torch
from torch import Tensor, nn


class InputSamples:
    """Recorder of layers' inputs at random places, over some batches.

    Args:
        modules: layers whose outputs are products of a weight and one place of the input.
        points: number of places of each sample.
        generator: source of random numbers, on the CPU.
    """

    def __init__(
        self, modules: Mapping[str, nn.Module], points: int, generator: torch.Generator
    ) -> None:
        self._modules = modules
        self._points = points
        self._generator = generator
        self._found: dict[str, list[Tensor]] = {name: [] for name in modules}

    def collect(self, batches: Iterable[object], run: Callable[[object], object]) -> None:
        """Run batches without gradients; add inputs of the layers at random places.

        Args:
            batches: what `run` takes.
            run: runs the model on a batch.
        """
        handles = [
            module.register_forward_pre_hook(partial(self._add, name))
            for name, module in self._modules.items()
        ]
        try:
            with torch.no_grad():
                for batch in batches:
                    run(batch)
        finally:
            for handle in handles:
                handle.remove()

    def of(self, name: str) -> Tensor | None:
        """Return the recorded inputs of a layer, concatenated; None if there are none.

        Args:
            name: name of the layer.

        Returns:
            `(places, inputs)`, float64 on the CPU; None for a layer that did not run.
        """
        found = self._found.get(name)
        return torch.cat(found) if found else None

    def _add(self, name: str, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        source = inputs[0].detach()
        if isinstance(module, nn.Conv2d):
            rows, columns = module.stride
            places = source[:, :, ::rows, ::columns].flatten(2).transpose(1, 2)
        else:
            places = source.reshape(len(source), -1, source.shape[-1])
        chosen = torch.randint(places.shape[1], (self._points,), generator=self._generator)
        if places.shape[1] <= self._points:
            chosen = torch.arange(places.shape[1])
        picked = places[:, chosen.to(places.device)].reshape(-1, places.shape[-1])
        self._found[name].append(picked.double().cpu())


def is_pointwise(module: nn.Module) -> bool:
    """Return whether each output place of a layer depends on one input place: 1x1 and Linear.

    Args:
        module: any module.
    """
    if isinstance(module, nn.Conv2d):
        return (
            module.kernel_size == (1, 1)
            and module.groups == 1
            and module.padding in {(0, 0), "valid"}
        )
    return isinstance(module, nn.Linear)


def refitted(weight: Tensor, inputs: Tensor, kept: Tensor) -> Tensor:
    """Return weights, zero for lost inputs, that fit the old outputs by least squares.

    Of all least-squares solutions it is the nearest to the old weights.

    Args:
        weight: `(outputs, inputs)`.
        inputs: `(places, inputs)`.
        kept: bool `(inputs,)`.

    Returns:
        `(outputs, inputs)`, zero where an input is gone; dtype and device of `weight`.

    Source: He et al., Channel Pruning for Accelerating Very Deep Neural Networks, 2017, equation 4.

    Examples:
        >>> inputs = torch.tensor([[1.0, 2.0], [2.0, 4.0]])  # the second is twice the first
        >>> kept = torch.tensor([True, False])
        >>> refitted(torch.tensor([[1.0, 1.0]]), inputs, kept).round(decimals=3)
        tensor([[3., 0.]])
    """
    old = weight.detach().double().cpu()
    points = inputs.double().cpu()
    known = kept.cpu()
    lost = points[:, ~known] @ old[:, ~known].T
    change = torch.linalg.lstsq(points[:, known], lost, driver="gelsd").solution
    found = torch.zeros_like(old)
    found[:, known] = old[:, known] + change.T
    return found.to(weight)
