"""Pruner of attention heads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, cast

from torch import Tensor, nn
from torch.optim import Optimizer

from nni.compression.base.arguments import check_count, check_evaluator
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Masks, Pruner, TargetKey
from nni.compression.config.settings import ConfigListError, Granularity
from nni.compression.masking.allocation import Scores
from nni.compression.masking.heads import head_norms, lowest_heads, lowest_heads_of_all
from nni.compression.pruning.attention_groups import attention_groups, check_projections
from nni.compression.pruning.epoch_training import EpochTraining, Trainer
from nni.compression.pruning.head_observer import HeadObserver, Statistic
from nni.compression.speedup.ancestry import AttentionLayers
from nni.compression.speedup.graph import Inputs

Criterion = Literal["l1_weight", "l2_weight", "l1_activation", "l2_activation", "taylorfo"]

_CRITERIA: Final = ("l1_weight", "l2_weight", "l1_activation", "l2_activation", "taylorfo")
_TOLERANCE: Final = 1e-9
"""Rounding error of a ratio times a number of heads, when it is rounded down."""


class TransformerHeadPruner(Pruner):
    """Pruner of the attention heads of smallest importance.

    A head loses its rows of the projections of query, key and value, with their biases, and its
    columns of the output projection. The four projections of an attention must be Linear layers of
    their own, as in models of the package `transformers`. Other layers that `config_list` selects
    are left as they are.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: Linear layers and ratios, in (0, 1); equal for the projections of an attention.
        head_hidden_dim: features of one head.
        attention_name_groups: names of the four projections of each attention, the output
            projection last; None to find them from one run of the model.
        dummy_input: inputs of that run: a tensor, a list or tuple, or a dict by name; None for
            that of the evaluator.
        ranking_criterion: `l1_weight`, `l2_weight`: norm of the rows of query, key and value;
            `l1_activation`, `l2_activation`: norm of the output of the head over all data;
            `taylorfo`: sum of |output x gradient of the loss| over one epoch.
        global_sort: whether the heads of all layers are ranked together; each layer keeps a head.
        num_iterations: iterations in which the ratio grows in equal steps, >= 1.
        epochs_per_iteration: epochs of fine-tuning between two iterations, >= 1.
        optimizer: optimizer of the model, for `trainer`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch, with `epoch=None` when
            it serves `taylorfo`.
        criterion: `(output, target) -> loss`, for `trainer`.
        forward_runner: `(model)`; runs the model on all data, for criteria of activations.
        evaluator: trains the model in place of `trainer`, and in `compress` with limits; its
            `evaluating_func` stands in for `forward_runner`.

    Attributes:
        attention_name_groups: names of the projections of each attention that is pruned.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range or missing, or projections do not fit together.

    Source: Michel et al., Are Sixteen Heads Really Better than One?, 2019 (`taylorfo`).

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import TransformerHeadPruner
        >>> class Attention(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))
        ...     def forward(self, tokens):
        ...         q, k, v = (f(tokens).unflatten(2, (4, 2)).transpose(1, 2)
        ...                    for f in (self.q, self.k, self.v))
        ...         found = (q @ k.transpose(2, 3)).softmax(3) @ v
        ...         return self.out(found.transpose(1, 2).flatten(2))
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> pruner = TransformerHeadPruner(
        ...     Attention(), config_list, head_hidden_dim=2, dummy_input=torch.zeros(1, 3, 8)
        ... )
        >>> _, masks = pruner.compress()
        >>> int(masks["q"]["bias"].sum()), len(pruner.pruned_heads[0])
        (4, 2)
    """

    default_granularity: Granularity = "out_channel"

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        head_hidden_dim: int,
        attention_name_groups: Sequence[Sequence[str]] | None = None,
        dummy_input: Inputs | None = None,
        ranking_criterion: Criterion = "l1_weight",
        global_sort: bool = False,  # noqa: FBT001, FBT002 - the documented signature
        num_iterations: int = 1,
        epochs_per_iteration: int = 1,
        optimizer: Optimizer | None = None,
        trainer: Trainer | None = None,
        criterion: Callable[..., Tensor] | None = None,
        forward_runner: Callable[[nn.Module], object] | None = None,
        *,
        evaluator: Evaluator | None = None,
    ) -> None:
        check_count("head_hidden_dim", head_hidden_dim)
        check_count("num_iterations", num_iterations)
        check_count("epochs_per_iteration", epochs_per_iteration)
        if evaluator is not None:
            check_evaluator(evaluator)
        if ranking_criterion not in _CRITERIA:
            known = ", ".join(_CRITERIA)
            raise ValueError(f"ranking_criterion must be one of {known}, got {ranking_criterion!r}")
        self.head_hidden_dim = head_hidden_dim
        self.ranking_criterion: Criterion = ranking_criterion
        self.global_sort = global_sort
        self.num_iterations = num_iterations
        self.epochs_per_iteration = epochs_per_iteration
        self._training = EpochTraining(evaluator, trainer, optimizer, criterion, forward_runner)
        self._check_training()
        self._observer: HeadObserver | None = None
        if ranking_criterion not in {"l1_weight", "l2_weight"}:
            self._observer = HeadObserver(head_hidden_dim, cast("Statistic", ranking_criterion))
        if dummy_input is None and evaluator is not None:
            dummy_input = evaluator.get_dummy_input()  # type: ignore[assignment]  # of the user
        self.attention_name_groups: list[AttentionLayers] = []
        self._given_groups = attention_name_groups
        self._dummy_input = dummy_input
        super().__init__(model, config_list, evaluator)

    @property
    def pruned_heads(self) -> dict[int, set[int]]:
        """Return the pruned heads of each attention, by its place in `attention_name_groups`."""
        return {
            place: set((~self._kept(group)).nonzero().flatten().tolist())
            for place, group in enumerate(self.attention_name_groups)
        }

    def compress(
        self, max_steps: int | None = None, max_epochs: int | None = None
    ) -> tuple[nn.Module, Masks]:
        """Prune in iterations with training between them; return model and masks.

        Args:
            max_steps: optimizer steps of fine-tuning by the evaluator at the end.
            max_epochs: epochs of fine-tuning by the evaluator at the end; none if both are None.

        Returns:
            The model, wrapped, and the masks.

        Raises:
            ValueError: fine-tuning at the end is asked for without an evaluator.
        """
        self._check_limits(max_steps, max_epochs)
        try:
            for iteration in range(1, self.num_iterations):
                self.ratio_factor = iteration / self.num_iterations
                super().compress()
                for epoch in range(self.epochs_per_iteration):
                    self._training.epoch(self.bound_model, epoch)
        finally:
            self.ratio_factor = 1.0
        return super().compress(max_steps, max_epochs)

    def collect_data(self) -> None:
        """Run or train the model, if the criterion needs outputs of heads."""
        if self._observer is None:
            return
        handles = self._observer.attach(
            {group[-1]: self._wrappers[group[-1]].module for group in self.attention_name_groups}
        )
        try:
            if self.ranking_criterion == "taylorfo":
                self._training.epoch(self.bound_model, None)
            else:
                self._training.forward(self.bound_model)
        finally:
            for handle in handles:
                handle.remove()

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return the importance of the head for each row, or column of an output projection."""
        metrics = {}
        for group in self.attention_name_groups:
            scores = self._head_scores(group).repeat_interleave(self.head_hidden_dim)
            for name in group[:-1]:
                metrics[name, "weight"] = scores[:, None]
            metrics[group[-1], "weight"] = scores[None]
        return metrics

    def _allocate(self, scores: Mapping[TargetKey, Scores]) -> dict[TargetKey, Tensor]:
        first = [scores[group[0], "weight"] for group in self.attention_name_groups]
        heads = [one.metric.reshape(-1, self.head_hidden_dim)[:, 0] for one in first]
        kept = [one.kept.reshape(-1, self.head_hidden_dim).any(1) for one in first]
        ratios = [one.settings.sparse_ratio or 0.0 for one in first]
        if self.global_sort:
            total = sum(len(one) for one in heads)
            stays = lowest_heads_of_all(heads, kept, int(total * ratios[0] + _TOLERANCE))
        else:
            least = 1 if self.ratio_factor == 1 else 0
            stays = [
                lowest_heads(one, alive, max(int(len(one) * ratio + _TOLERANCE), least))
                for one, alive, ratio in zip(heads, kept, ratios, strict=True)
            ]
        found = {}
        for group, one in zip(self.attention_name_groups, stays, strict=True):
            features = one.repeat_interleave(self.head_hidden_dim)
            for name in group:
                key = (name, "weight")
                found[key] = features.reshape(scores[key].metric.shape)
        return found

    def _head_scores(self, group: AttentionLayers) -> Tensor:
        if self.ranking_criterion.endswith("_weight"):
            weights = [self._wrappers[name].parameter("weight").detach() for name in group[:-1]]
            order = 1 if self.ranking_criterion == "l1_weight" else 2
            return head_norms(weights, self.head_hidden_dim, order)
        assert self._observer is not None  # other criteria have one
        return self._observer.scores(group[-1])

    def _kept(self, group: AttentionLayers) -> Tensor:
        mask = self._wrappers[group[0]].mask("weight")
        assert mask is not None  # parameters have a mask from the start
        return mask.reshape(-1, self.head_hidden_dim * mask.shape[1]).any(1)

    def _block_sizes(self, name: str, target: str) -> tuple[int, ...]:
        is_output = any(name == group[-1] for group in self.attention_name_groups)
        if is_output and target == "weight":
            return (self._wrappers[name].parameter(target).shape[0], 1)
        return super()._block_sizes(name, target)

    def _check_training(self) -> None:
        can_train = self._training.can_train
        if self.ranking_criterion == "taylorfo" and not can_train:
            raise ValueError("ranking_criterion 'taylorfo' needs trainer and optimizer")
        if self.num_iterations > 1 and not can_train:
            raise ValueError("num_iterations > 1 needs trainer and optimizer, to train in between")
        if self.ranking_criterion.endswith("_activation") and not self._training.can_run:
            raise ValueError(f"ranking_criterion {self.ranking_criterion!r} needs forward_runner")

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Mapping[str, object]]
    ) -> Mapping[str, ModuleWrapper]:
        """Store the attentions to prune; return wrappers of selected projections; raise if none."""
        found = super()._make_wrappers(model, config_list)
        groups = attention_groups(model, self._given_groups, self._dummy_input)
        chosen = [group for group in groups if any(name in found for name in group)]
        if not chosen:
            raise ConfigListError("config_list", "selects no projection of an attention")
        self.attention_name_groups = chosen
        names = {name for group in chosen for name in group}
        return {name: wrapper for name, wrapper in found.items() if name in names}

    def _check_targets(self) -> None:
        super()._check_targets()
        ratios = {group: self._ratio_of(group) for group in self.attention_name_groups}
        if self.global_sort and len(set(ratios.values())) > 1:
            raise ConfigListError(
                "config_list", f"needs one sparsity for all layers with global_sort, got {ratios}"
            )

    def _ratio_of(self, group: AttentionLayers) -> float:
        """Return the ratio of an attention; raise ConfigListError unless its layers agree."""
        missing = [name for name in group if name not in self._wrappers]
        if missing:
            raise ConfigListError(
                "config_list", f"selects a part of the attention {group}; select {missing} as well"
            )
        settings = [self._wrappers[name].targets["weight"] for name in group]
        ratios = [one.sparse_ratio for one in settings]
        if len(set(ratios)) > 1:
            raise ConfigListError(
                "config_list", f"needs one sparsity for the attention {group}, got {ratios}"
            )
        if ratios[0] is None or not 0 < ratios[0] < 1:
            raise ConfigListError(
                "config_list", f"needs a sparsity in (0, 1) for {group[0]}, got {ratios[0]}"
            )
        if any(one.granularity != "default" for one in settings):
            raise ConfigListError("config_list", f"has a granularity for {group}; leave it out")
        weights = {name: self._wrappers[name].parameter("weight") for name in group}
        check_projections(group, weights, self.head_hidden_dim)
        return ratios[0]
