"""Data collectors of NNI 2.x, which read weights, outputs and gradients of layers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.arguments import check_count
from nni.compression.base.compressor import Compressor
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.target_space import first_output

Data = dict[str, Any]
"""Tensors, or lists of them, by name of the layer."""


class DataCollector(ABC):
    """Base of collectors of the tensors that metrics of a pruner's layers are made from.

    Args:
        compressor: the pruner, whose wrappers name the layers.

    Examples:
        >>> from nni.compression.pruning.tools import DataCollector
        >>> class SizeCollector(DataCollector):
        ...     def collect(self):
        ...         return {name: len(one.weight) for name, one in self.wrappers.items()}
    """

    def __init__(self, compressor: Compressor) -> None:
        self.compressor = compressor

    @property
    def wrappers(self) -> dict[str, ModuleWrapper]:
        """Return the wrappers of the pruner, as they are now, by name of the layer."""
        return self.compressor.get_modules_wrapper()

    @abstractmethod
    def collect(self) -> Data:
        """Return by layer the tensors, or lists of them, that metrics are calculated from."""

    def reset(self) -> None:  # noqa: B027 - most have nothing to forget
        """Forget earlier data; by default there are none."""


class WeightDataCollector(DataCollector):
    """Collector of copies of the weights as they are.

    Args:
        compressor: the pruner, whose wrappers name the layers.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner
        >>> from nni.compression.pruning.tools import WeightDataCollector
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> pruner = LevelPruner(nn.Sequential(nn.Linear(3, 2)), config_list)
        >>> WeightDataCollector(pruner).collect()["0"].shape
        torch.Size([2, 3])
    """

    def collect(self) -> Data:  # noqa: D102 - see the base
        return {
            name: wrapper.parameter("weight").detach().clone()
            for name, wrapper in self.wrappers.items()
        }


class WeightTrainerBasedDataCollector(WeightDataCollector):
    """Collector that trains the model for some epochs, then copies the weights.

    Args:
        compressor: the pruner, whose wrappers name the layers.
        evaluator: trains the model.
        training_epochs: number of epochs, >= 1.
        loss_patch: takes loss and batch and returns the loss to minimise; None for the loss.

    Raises:
        ValueError: `training_epochs` is below 1.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
        >>> from nni.compression.pruning import LevelPruner
        >>> from nni.compression.pruning.tools import WeightTrainerBasedDataCollector
        >>> def trainer(model, optimizer, criterion):
        ...     optimizer.zero_grad()
        ...     criterion(model(torch.ones(1, 1)), torch.zeros(1, 1)).backward()
        ...     optimizer.step()
        >>> model = nn.Sequential(nn.Linear(1, 1, bias=False))
        >>> with torch.no_grad():
        ...     _ = model[0].weight.fill_(1)
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.25)
        >>> evaluator = LegacyEvaluator(trainer, sgd, nn.MSELoss())
        >>> pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparsity": 0.5}])
        >>> WeightTrainerBasedDataCollector(pruner, evaluator, 2).collect()["0"]
        tensor([[0.2500]])
    """

    def __init__(
        self,
        compressor: Compressor,
        evaluator: Evaluator,
        training_epochs: int,
        loss_patch: Callable[[Tensor, Any], Tensor] | None = None,
    ) -> None:
        check_count("training_epochs", training_epochs)
        super().__init__(compressor)
        self._evaluator = evaluator
        self._epochs = training_epochs
        self._loss_patch = loss_patch

    def collect(self) -> Data:  # noqa: D102 - see the base
        self._evaluator.bind_model(self.compressor.bound_model)
        try:
            if self._loss_patch is not None:
                self._evaluator.patch_loss(self._loss_patch)
            self._evaluator.train(max_epochs=self._epochs)
        finally:
            self._evaluator.unbind_model()
        return super().collect()


class SingleHookTrainerBasedDataCollector(DataCollector):
    """Collector of outputs, or of gradients of weights, during some training steps.

    Args:
        compressor: the pruner, whose wrappers name the layers.
        evaluator: trains the model.
        training_steps: largest number of tensors of a layer, >= 1.
        kind: `output` of the layers, or `gradient` of their weights.

    Raises:
        ValueError: `training_steps` is below 1, or `kind` is another one.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
        >>> from nni.compression.pruning import LevelPruner
        >>> from nni.compression.pruning.tools import SingleHookTrainerBasedDataCollector
        >>> def trainer(model, optimizer, criterion):
        ...     for _ in range(3):
        ...         optimizer.zero_grad()
        ...         criterion(model(torch.ones(2, 1)), torch.zeros(2, 4)).backward()
        ...         optimizer.step()
        >>> model = nn.Sequential(nn.Linear(1, 4))
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.25)
        >>> evaluator = LegacyEvaluator(trainer, sgd, nn.MSELoss())
        >>> pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparsity": 0.5}])
        >>> data = SingleHookTrainerBasedDataCollector(pruner, evaluator, 2).collect()
        >>> [tuple(one.shape) for one in data["0"]]
        [(2, 4), (2, 4)]
    """

    def __init__(
        self,
        compressor: Compressor,
        evaluator: Evaluator,
        training_steps: int,
        kind: Literal["output", "gradient"] = "output",
    ) -> None:
        check_count("training_steps", training_steps)
        if kind not in {"output", "gradient"}:
            raise ValueError(f"kind must be 'output' or 'gradient', got {kind!r}")
        super().__init__(compressor)
        self._evaluator = evaluator
        self._steps = training_steps
        self._kind = kind
        self._data: dict[str, list[Tensor]] = {}

    def reset(self) -> None:  # noqa: D102 - see the base
        self._data = {}

    def collect(self) -> Data:
        """Train for some steps; return the collected tensors of each layer."""
        self._data = {name: [] for name in self.wrappers}
        self._evaluator.bind_model(self.compressor.bound_model)
        try:
            self._evaluator.register_hooks(
                [self._hook(name, wrapper) for name, wrapper in self.wrappers.items()]
            )
            self._evaluator.train(max_steps=self._steps)
        finally:
            self._evaluator.unbind_model()
        return self._data

    def _hook(self, name: str, wrapper: ModuleWrapper) -> RemovableHandle:
        if self._kind == "output":
            return wrapper.module.register_forward_hook(partial(self._add_output, name))
        weight: Tensor = wrapper.parameter("weight")
        handle: RemovableHandle = Tensor.register_hook(weight, partial(self._add, name))  # type: ignore[no-untyped-call]  # torch has no types here
        return handle

    def _add_output(self, name: str, _module: nn.Module, _inputs: object, output: object) -> None:
        self._add(name, first_output(output))

    def _add(self, name: str, value: Tensor) -> None:
        if len(self._data[name]) < self._steps:
            self._data[name].append(value.detach().clone())
