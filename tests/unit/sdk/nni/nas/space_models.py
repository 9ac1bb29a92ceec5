"""Small spaces for the tests of spaces; another process imports them by name."""

from typing import Any

import torch
from torch import Tensor, nn

import nni
from nni.mutable import Categorical, Mutable, Sample, SampleValidationError, ensure_frozen
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear


class TinySpace(ModelSpace, label_prefix="tiny"):
    """Three dimensions: 3 widths, 2 activations, 2 heads."""

    def __init__(self, inputs: int = 4) -> None:
        super().__init__()
        width = Categorical([8, 16, 32], label="width")
        self.hidden = MutableLinear(inputs, width)
        self.activation = LayerChoice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, label="activation")
        self.head = LayerChoice([MutableLinear(width, 2), self._wide_head(width)], label="head")

    @staticmethod
    def _wide_head(width: Categorical) -> nn.Module:
        return nn.Sequential(MutableLinear(width, 5), nn.Linear(5, 2))

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.head(self.activation(self.hidden(inputs)))
        return output


class SharedSpace(ModelSpace):
    """A choice between layers with weights, and a fixed layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = LayerChoice([nn.Linear(3, 3), nn.Linear(3, 3, bias=False)], label="first")
        self.last = nn.Linear(3, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.last(self.first(inputs))
        return output


class PairSpace(ModelSpace):
    """A space whose values are tuples."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = self.add_mutable(Categorical([(1, 1), (3, 1)], label="kernel"))
        self.size = self.kernel_size()

    def kernel_size(self) -> object:
        from nni.mutable import ensure_frozen

        return ensure_frozen(self.kernel)


class WeightSum:
    """Evaluator that changes weights and returns what they were."""

    def evaluate(self, model: nn.Module) -> float:
        with torch.no_grad():
            total = sum(parameter.sum() for parameter in model.parameters())
            for parameter in model.parameters():
                parameter.add_(1.0)
        return float(total)


class RateEvaluator(Mutable):
    """Evaluator with one dimension of its own; it returns its value."""

    def __init__(self) -> None:
        self.rate = Categorical([0.1, 0.2], label="rate")

    def leaf_mutables(self, is_leaf):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - as its base
        return self.rate.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        return self.rate.check_contains(sample)

    def freeze(self, sample: Sample) -> "FixedRate":
        return FixedRate(self.rate.freeze(sample))

    def evaluate(self, model: nn.Module) -> float:
        raise RuntimeError(f"the evaluator of {model} must be frozen")


class FixedRate:
    """What `RateEvaluator` is frozen to."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def evaluate(self, model: nn.Module) -> float:
        del model
        return self.rate


class ValueSpace(ModelSpace):
    """Space whose one choice is among any values."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.value = ensure_frozen(self.add_mutable(nni.choice("value", values)), strict=False)
