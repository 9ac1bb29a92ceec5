"""Pruner that prunes insensitive convolutions more than sensitive ones."""

from __future__ import annotations

import csv
import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from nni.compression.base.pruner import Masks
from nni.compression.pruning.search_pruner import SearchPruner

if TYPE_CHECKING:
    from nni.compression.pruning.sensitivity_analysis import Metrics, SensitivityAnalysis

_logger = logging.getLogger(__name__)

SparsityProportion = Callable[..., Mapping[str, float]]
"""`(sensitivities)` or `(ori_acc, threshold, sensitivities)` to the proportion of each layer."""

_LARGEST: Final = 0.95
"""Largest part of what is left of a layer that one iteration prunes."""
_TOLERANCE: Final = 1e-9
"""Rounding error of a sum of sparsities."""


class SensitivityPruner(SearchPruner):
    """Pruner of convolutions in proportion to what each can lose before the metric falls.

    Each iteration measures the model with one convolution pruned at a time, prunes a fixed part of
    all weights, spread by these sensitivities, and may fine-tune. The metric after it is what the
    next sensitivities are compared with.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: convolutions and one ratio for all; not changed.
        evaluator: returns the metric, larger is better; it gets `eval_args` and `eval_kwargs` of
            `compress`, and without any of them the model.
        finetuner: trains the model in place after each iteration; it gets `finetune_args` and
            `finetune_kwargs` of `compress`, and without any of them the model. None for none.
        base_algo: `level`, `l1`, `l2` or `fpgm`: what is pruned in a layer.
        sparsity_proportion_calc: function of the sensitivities, or of the metric of the whole
            model, `acc_drop_threshold` and the sensitivities, that returns a proportion by layer;
            None for the first sparsity at which the metric falls by more than the threshold.
        sparsity_per_iter: part of all weights that an iteration prunes, in (0, 1).
        acc_drop_threshold: fall of the metric that ends the measurements of a layer.
        checkpoint_dir: folder for state dict, configuration and sensitivities of each iteration;
            None for no files.

    Attributes:
        history: metric and remaining part of the weights after each iteration.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import SensitivityPruner
        >>> model = nn.Sequential(nn.Conv2d(1, 10, 1), nn.Conv2d(10, 10, 1))
        >>> def evaluator(model):
        ...     return float(model(torch.ones(1, 1, 1, 1)).detach().abs().sum())
        >>> config_list = [{"op_types": ["Conv2d"], "sparse_ratio": 0.4}]
        >>> pruner = SensitivityPruner(model, config_list, evaluator, sparsity_per_iter=0.2)
        >>> _, masks = pruner.compress()
        >>> pruner.current_sparsity() >= 0.35
        True
    """

    op_types = frozenset({"Conv1d", "Conv2d"})

    def __init__(  # noqa: PLR0913 - the signature of NNI 1.x
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        evaluator: Callable[..., float],
        finetuner: Callable[..., object] | None = None,
        base_algo: str = "l1",
        sparsity_proportion_calc: SparsityProportion | None = None,
        sparsity_per_iter: float = 0.1,
        acc_drop_threshold: float = 0.05,
        checkpoint_dir: str | Path | None = None,
    ) -> None:
        if not callable(evaluator):
            raise TypeError(
                f"evaluator must be a function that returns a metric, got {evaluator!r}"
            )
        if not 0 < sparsity_per_iter < 1:
            raise ValueError(f"sparsity_per_iter must be in (0, 1), got {sparsity_per_iter}")
        if not acc_drop_threshold > 0:
            raise ValueError(f"acc_drop_threshold must be > 0, got {acc_drop_threshold}")
        self._evaluate = evaluator
        self._finetune = finetuner
        self._proportions = sparsity_proportion_calc or default_proportions
        self._per_iteration = sparsity_per_iter
        self._threshold = acc_drop_threshold
        self._folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        self._eval: tuple[Sequence[Any], Mapping[str, Any]] = ((), {})
        self._tune: tuple[Sequence[Any], Mapping[str, Any]] = ((), {})
        self._resumed: Metrics | None = None
        self.history: list[tuple[float, float]] = []
        super().__init__(model, config_list, base_algo)

    def compress(  # type: ignore[override]  # the documented arguments
        self,
        eval_args: Sequence[Any] | None = None,
        eval_kwargs: Mapping[str, Any] | None = None,
        finetune_args: Sequence[Any] | None = None,
        finetune_kwargs: Mapping[str, Any] | None = None,
        resume_sensitivity: str | Path | None = None,
    ) -> tuple[nn.Module, Masks]:
        """Prune until the sparsity is reached; return model and masks.

        Args:
            eval_args: positional arguments of the evaluator.
            eval_kwargs: named arguments of the evaluator.
            finetune_args: positional arguments of the fine-tuner.
            finetune_kwargs: named arguments of the fine-tuner.
            resume_sensitivity: CSV file of the first sensitivities; None to measure them.

        Returns:
            The model, wrapped, and the masks.

        Raises:
            OSError: the file cannot be read.
        """
        self._eval = eval_args or (), eval_kwargs or {}
        self._tune = finetune_args or (), finetune_kwargs or {}
        self._resumed = None if resume_sensitivity is None else load_sensitivity(resume_sensitivity)
        return super().compress()

    def current_sparsity(self) -> float:
        """Return the part of the weights of all selected layers that is masked."""
        sizes, sparsities = self.weight_sizes(), self.layer_sparsities()
        return sum(sparsities[name] * size for name, size in sizes.items()) / sum(sizes.values())

    def load_sensitivity(self, filepath: str | Path) -> Metrics:
        """Read a CSV file; return for each layer the metric by sparsity; change nothing.

        Args:
            filepath: a file of `SensitivityAnalysis.export`.

        Returns:
            Metrics by layer and sparsity.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no such file; the text names file and line.
        """
        return load_sensitivity(filepath)

    def search(self) -> None:
        """Measure sensitivities, prune and tune, in turn, to the sparsity or as far as possible."""
        try:
            self._search()
        finally:  # also after an error of the evaluator
            self.wrap_model()

    def _search(self) -> None:
        # The analysis prunes with pruners of this package, which is being imported until then.
        from nni.compression.pruning.sensitivity_analysis import SensitivityAnalysis

        analysis = SensitivityAnalysis(
            self.unwrap_model(),
            self._evaluate,
            prune_type=self.base_algo,
            early_stop_mode="dropped",
            early_stop_value=self._threshold,
        )
        baseline = self._called(self._evaluate, self._eval)
        target, self.history = self.target_sparsity, []
        while self.current_sparsity() < target - _TOLERANCE:
            sensitivities = self._sensitivities(analysis)
            if not self._prune(self._ratios(baseline, sensitivities), target):
                _logger.error("no layer can be pruned further; %s reached", self.current_sparsity())
                break
            baseline = self._tuned()
            self.history.append((baseline, 1 - self.current_sparsity()))
            _logger.info("metric %s, sparsity %.4f", baseline, self.current_sparsity())
            self._write_checkpoint(len(self.history), sensitivities)

    def _sensitivities(self, analysis: SensitivityAnalysis) -> Metrics:
        if self._resumed is not None:
            found, self._resumed = self._resumed, None
            return found
        self.unwrap_model()
        analysis.load_state_dict(self.bound_model.state_dict())
        for name, sparsity in self.layer_sparsities().items():
            analysis.update_already_pruned(name, min(sparsity, _LARGEST))
        args, kwargs = self._eval
        return analysis.analysis(args, kwargs, list(self._wrappers))

    def _ratios(self, baseline: float, sensitivities: Metrics) -> dict[str, float]:
        """Return the proportions by which layers lose weights, without those of 0."""
        calculate = self._proportions
        one = len(inspect.signature(calculate).parameters) == 1
        arguments = (sensitivities,) if one else (baseline, self._threshold, sensitivities)
        found = calculate(*arguments)
        return {name: float(found[name]) for name in self._wrappers if found.get(name, 0) > 0}

    def _prune(self, ratios: Mapping[str, float], target: float) -> bool:
        """Mask a part of all weights, spread by the ratios; return whether any was masked."""
        sizes, before = self.weight_sizes(), self.layer_sparsities()
        left = {name: size * (1 - before[name]) for name, size in sizes.items()}
        amount = min(self._per_iteration, target - self.current_sparsity()) * sum(sizes.values())
        while ratios and amount < sum(sizes.values()):
            parts = normalized(ratios, left, amount)
            goal = {name: one + (1 - one) * parts.get(name, 0.0) for name, one in before.items()}
            self.update_masks(self.masks_at(goal))
            if self.layer_sparsities() != before:
                return True
            amount *= 2  # the part is smaller than a channel of any layer
        return False

    def _tuned(self) -> float:
        """Set masked weights to zero, fine-tune if configured; return the metric."""
        _zero(self.unwrap_model(), self.get_masks())  # also for the sensitivities that follow
        self.wrap_model()
        if self._finetune is not None:
            self._called(self._finetune, self._tune)
        return self._called(self._evaluate, self._eval)

    def _called(
        self,
        function: Callable[..., Any],
        arguments: tuple[Sequence[Any], Mapping[str, Any]],
    ) -> float:
        args, kwargs = arguments
        result = function(*args, **kwargs) if args or kwargs else function(self.bound_model)
        return 0.0 if result is None else float(result)

    def _write_checkpoint(self, iteration: int, sensitivities: Metrics) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        metric, remaining = self.history[-1]
        name = f"Iter_{iteration}_finetune_acc_{metric:.5f}_sparsity_{remaining:.4f}"
        self.export_model(self._folder / f"{name}.pth")
        config_list = [
            {"sparsity": sparsity, "op_names": [layer]}
            for layer, sparsity in self.layer_sparsities().items()
            if sparsity > 0
        ]
        text = json.dumps(config_list)
        (self._folder / f"{name}_pruner.json").write_text(text, encoding="utf-8")
        _write_sensitivity(self._folder / f"{name}_sensitivity.csv", sensitivities)


def default_proportions(
    ori_acc: float, threshold: float, sensitivities: Mapping[str, Mapping[float, float]]
) -> dict[str, float]:
    """Return for each layer the first sparsity with too low a metric, else the largest.

    Args:
        ori_acc: metric of the model before.
        threshold: how much it may fall.
        sensitivities: metrics by layer and sparsity.

    Returns:
        A sparsity by layer; the largest measured one if the metric never falls by too much. NaN
        counts as a fall.

    Examples:
        >>> default_proportions(0.9, 0.1, {"a": {0.1: 0.85, 0.2: 0.7}, "b": {0.1: 0.9, 0.2: 0.89}})
        {'a': 0.2, 'b': 0.2}
    """
    found = {}
    for name, measured in sensitivities.items():
        falls = [one for one in sorted(measured) if not measured[one] >= ori_acc - threshold]
        found[name] = falls[0] if falls else max(measured)
    return found


def normalized(
    ratios: Mapping[str, float], left: Mapping[str, float], amount: float
) -> dict[str, float]:
    """Return ratios scaled to prune `amount` weights, each at most 0.95; empty if none can.

    Args:
        ratios: by layer, > 0.
        left: weights that are left, by layer.
        amount: number of weights to prune.

    Returns:
        Parts of what is left, by layer; the largest is at most 0.95.

    Examples:
        >>> normalized({"a": 0.2, "b": 0.1}, {"a": 100.0, "b": 100.0}, 60)
        {'a': 0.4, 'b': 0.2}
    """
    pruned = sum(ratio * left[name] for name, ratio in ratios.items())
    if pruned == 0:
        return {}
    factor = min(amount / pruned, _LARGEST / max(ratios.values()))
    return {name: ratio * factor for name, ratio in ratios.items()}


def load_sensitivity(filepath: str | Path) -> Metrics:
    """Read a CSV file; return for each layer the metric by sparsity.

    Args:
        filepath: a file of `SensitivityAnalysis.export`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file; the text names file and line.
    """
    path, line = Path(filepath), 1
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            _, *header = next(reader, [])  # an empty file has not even the first title
            sparsities = [float(one) for one in header]
            found = {}
            for row in reader:
                line = reader.line_num
                name, *values = row
                # Rows may be short.
                found[name] = dict(zip(sparsities, map(float, values), strict=False))
    except (ValueError, csv.Error) as error:
        raise ValueError(
            f"{path}, line {line} must be of a file of SensitivityAnalysis.export, with a layer's "
            f"name and numbers: {error}; export it again, or leave it out"
        ) from error
    return found


def _write_sensitivity(path: Path, sensitivities: Metrics) -> None:
    sparsities = sorted({one for measured in sensitivities.values() for one in measured})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["layername", *sparsities])
        for name, measured in sensitivities.items():
            writer.writerow([name, *(measured[one] for one in sorted(measured))])


def _zero(model: nn.Module, masks: Masks) -> None:
    with torch.no_grad():
        for name, targets in masks.items():
            for target, mask in targets.items():
                model.get_submodule(name).get_parameter(target).mul_(mask)
