"""Base of the pruners that learn from some training steps."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

from torch import nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.arguments import check_count, check_evaluator
from nni.compression.base.pruner import Pruner
from nni.compression.config.settings import Granularity
from nni.compression.evaluators.torch_evaluator import TorchEvaluator

Mode = Literal["normal", "global", "dependency_aware"]


class TrainingPruner(Pruner):
    """Base of the pruners that observe the model during some training steps.

    A subclass says what it observes: it returns hooks, which are removed after the steps.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        evaluator: trains the model.
        training_steps: number of optimizer steps that are observed, >= 1.
        mode: `normal`: each target reaches its ratio; `global`: the targets of an entry reach it
            together.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.
    """

    default_granularity: Granularity = "out_channel"

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        evaluator: TorchEvaluator,
        training_steps: int,
        mode: Mode = "normal",
    ) -> None:
        check_count("training_steps", training_steps)
        check_evaluator(evaluator)
        if mode == "dependency_aware":
            raise ValueError(
                "mode 'dependency_aware' is not available; give the layers whose outputs are "
                "added one dependency_group_id, and grouped convolutions internal_metric_block"
            )
        if mode not in {"normal", "global"}:
            raise ValueError(f"mode must be 'normal' or 'global', got {mode!r}")
        self.per_entry = mode == "global"
        self.training_steps = training_steps
        self._trained_by = evaluator
        super().__init__(model, config_list, evaluator)

    @abstractmethod
    def observe(self) -> list[RemovableHandle]:
        """Forget earlier observations, register hooks and return them."""

    def collect_data(self) -> None:
        """Train for the number of steps with hooks."""
        evaluator = self._trained_by
        evaluator.bind_model(self.bound_model)
        try:
            evaluator.register_hooks(self.observe())
            self.patch(evaluator)
            evaluator.train(max_steps=self.training_steps)
        finally:
            evaluator.unbind_model()
