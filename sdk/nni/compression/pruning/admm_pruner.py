"""Pruner that trains the weights towards sparse ones first: ADMM."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_count, check_evaluator
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import Pruner, TargetKey
from nni.compression.masking.granularity import to_blocks
from nni.compression.pruning.base_algorithms import base_algorithm


class ADMMPruner(Pruner):
    """Pruner that trains weights towards the nearest sparse ones, then masks the smallest.

    Each iteration trains with the loss plus rho/2 times the squared distance of the weights W to
    Z - U. Then Z becomes W + U with its smallest blocks zero, and U grows by W - Z. The masks are
    those of the weights after the last iteration.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; blocks are single weights unless `granularity` says more.
        evaluator: trains the model.
        iterations: number of iterations, >= 1.
        training_epochs: epochs of training in each iteration, >= 1.
        rho: weight of the distance, > 0.
        base_algo: what is masked as one, and its metric: `level` for single weights, `l1`, `l2` or
            `fpgm` for output channels.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or an argument has another type.
        ValueError: an argument is out of range.

    Source: Zhang et al., A Systematic DNN Weight Pruning Framework using Alternating Direction
        Method of Multipliers, 2018, section 3.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import ADMMPruner
        >>> model = nn.Sequential(nn.Linear(4, 4))
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_epochs):
        ...         optimizer.zero_grad()
        ...         step(torch.ones(1, 4), model).backward()
        ...         optimizer.step()
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.75}]
        >>> pruner = ADMMPruner(model, config_list, evaluator, iterations=2, training_epochs=3)
        >>> _, masks = pruner.compress()
        >>> int(masks["0"]["weight"].sum())
        4
    """

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator,
        iterations: int,
        training_epochs: int,
        rho: float = 1e-4,
        base_algo: str = "level",
    ) -> None:
        self._algorithm = base_algorithm(base_algo)
        self.default_granularity = self._algorithm.granularity
        check_count("iterations", iterations)
        check_count("training_epochs", training_epochs)
        if not rho > 0:
            raise ValueError(f"rho must be > 0, got {rho!r}")
        check_evaluator(evaluator)
        self.iterations = iterations
        self.training_epochs = training_epochs
        self.rho = rho
        self._trained_by = evaluator
        self._sparse: dict[TargetKey, Tensor] = {}
        self._duals: dict[TargetKey, Tensor] = {}
        super().__init__(model, config_list, evaluator)

    def collect_data(self) -> None:
        """Run the ADMM iterations: train, then update the sparse weights and the duals."""
        self._sparse = {key: self._weight(key).clone() for key in self.own_targets()}
        self._duals = {key: torch.zeros_like(one) for key, one in self._sparse.items()}
        for _ in range(self.iterations):
            self._train()
            masks = self.generate_masks()
            for key, dual in self._duals.items():
                name, target = key
                self._sparse[key] = (self._weight(key) + dual) * masks[name][target]
                dual.add_(self._weight(key) - self._sparse[key])
        self._duals = {}

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return the metrics of the blocks of W + U while it trains, of W afterwards."""
        found = {}
        for key in self.own_targets():
            dual = self._duals.get(key)
            weight = self._weight(key) if dual is None else self._weight(key) + dual
            found[key] = self._algorithm.metric(to_blocks(weight, self._block_sizes(*key)))
        return found

    def _train(self) -> None:
        self._trained_by.bind_model(self.bound_model)
        try:
            self._trained_by.patch_optimizer_step([self._pull_weights], [])
            self._trained_by.train(max_epochs=self.training_epochs)
        finally:
            self._trained_by.unbind_model()

    def _pull_weights(self) -> None:
        """Add the gradient of the distance, rho (W - Z + U), to those of the parameters."""
        for key, sparse in self._sparse.items():
            name, target = key
            parameter = self._wrappers[name].parameter(target)
            pull = self.rho * (parameter.detach() - sparse + self._duals[key])
            parameter.grad = pull if parameter.grad is None else parameter.grad + pull

    def _weight(self, key: TargetKey) -> Tensor:
        name, target = key
        return self._wrappers[name].parameter(target).detach()
