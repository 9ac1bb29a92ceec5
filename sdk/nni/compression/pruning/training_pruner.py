"""Base of the pruners that learn from some training steps."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.arguments import check_count, check_evaluator
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.parallel import mean_over_processes
from nni.compression.base.pruner import TargetKey
from nni.compression.masking.allocation import Scores
from nni.compression.pruning.channel_pruner import ChannelPruner, Mode
from nni.compression.speedup.graph import Inputs


class TrainingPruner(ChannelPruner):
    """Base of the pruners that observe the model during some training steps.

    A subclass says what it observes: it returns hooks, which are removed after the steps.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        evaluator: trains the model.
        training_steps: number of optimizer steps that are observed, >= 1.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.
    """

    training_epochs: int | None = None
    """Number of epochs to observe instead of `training_steps`, for some algorithms of NNI 2.x."""

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator,
        training_steps: int,
        mode: Mode = "normal",
        dummy_input: Inputs | None = None,
    ) -> None:
        check_count("training_steps", training_steps)
        check_evaluator(evaluator)
        self.training_steps = training_steps
        self._trained_by = evaluator
        super().__init__(model, config_list, evaluator, mode, dummy_input)

    @abstractmethod
    def observe(self) -> list[RemovableHandle]:
        """Forget earlier observations, register hooks and return them."""

    def _scores(self, key: TargetKey, metric: Tensor) -> Scores:
        # Every process sees data of its own; with the mean all of them mask the same.
        shared = mean_over_processes(metric) if self.is_distributed else metric
        return super()._scores(key, shared)

    def collect_data(self) -> None:
        """Train for the configured steps or epochs while the hooks of `observe` store data."""
        evaluator = self._trained_by
        evaluator.bind_model(self.bound_model)
        try:
            evaluator.register_hooks(self.observe())
            self.patch(evaluator)
            if self.training_epochs is None:
                evaluator.train(max_steps=self.training_steps)
            else:
                evaluator.train(max_epochs=self.training_epochs)
        finally:
            evaluator.unbind_model()
