"""Sensitivity analysis: how much each layer of a model can lose before the metric suffers."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, cast

from torch import Tensor, nn

from nni.compression.base.pruner import Pruner
from nni.compression.pruning.fpgm_pruner import FPGMPruner
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.pruning.norm_pruner import L1NormPruner, L2NormPruner

StopMode = Literal["minimize", "maximize", "dropped", "raised"]
Metrics = dict[str, dict[float, float]]

_PRUNERS: Final[Mapping[str, type[Pruner]]] = {
    "l1": L1NormPruner,
    "l2": L2NormPruner,
    "fpgm": FPGMPruner,
    "level": LevelPruner,
}
_MODES: Final = ("minimize", "maximize", "dropped", "raised")
_DEFAULT_SPARSITIES: Final = tuple(tenth / 10 for tenth in range(1, 10))


class SensitivityAnalysis:
    """Measurement of a model with one convolution pruned at a time, at growing sparsities.

    The parameters of the model are the same afterwards. To use several processes, give each of
    them other layers.

    Args:
        model: the model, without wrappers.
        val_func: returns the metric of the model; it gets the arguments of `analysis`.
        sparsities: sparsities to try, in (0, 1); None for 0.1 to 0.9. They are rounded to two
            decimals and sorted.
        prune_type: `l1`, `l2` or `fpgm` for filters, `level` for single weights.
        early_stop_mode: ends the measurements of a layer with the first metric that is below
            (`minimize`) or above (`maximize`) `early_stop_value`, or that is lower (`dropped`) or
            higher (`raised`) than the metric of the whole model by more than it, or NaN; None for
            no end.
        early_stop_value: see `early_stop_mode`.

    Attributes:
        sensitivities: metrics of the last analysis, by layer and sparsity.
        already_pruned: part of each layer that was pruned before, by layer.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> import torch
        >>> from nni.compression.utils import SensitivityAnalysis
        >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 10, 1, bias=False))
        >>> def kept(model):
        ...     return float((model(torch.ones(1, 1, 1, 1)) != 0).sum())
        >>> SensitivityAnalysis(model, kept, sparsities=[0.2, 0.5]).analysis()
        {'0': {0.2: 8.0, 0.5: 5.0}}
    """

    def __init__(
        self,
        model: nn.Module,
        val_func: Callable[..., float],
        sparsities: Iterable[float] | None = None,
        prune_type: str = "l1",
        early_stop_mode: StopMode | None = None,
        early_stop_value: float | None = None,
    ) -> None:
        if prune_type not in _PRUNERS:
            known = ", ".join(_PRUNERS)
            raise ValueError(f"prune_type must be one of {known}, got {prune_type!r}")
        if early_stop_mode is not None and early_stop_mode not in _MODES:
            known = ", ".join(_MODES)
            raise ValueError(f"early_stop_mode must be one of {known}, got {early_stop_mode!r}")
        if (early_stop_mode is None) != (early_stop_value is None):
            raise ValueError("early_stop_mode and early_stop_value must be given together")
        chosen = _DEFAULT_SPARSITIES if sparsities is None else sparsities
        self.sparsities = sorted({round(float(one), 2) for one in chosen})
        if not self.sparsities or not 0 < self.sparsities[0] <= self.sparsities[-1] < 1:
            raise ValueError(f"sparsities must be in (0, 1), got {self.sparsities}")
        self.model = model
        self.val_func = val_func
        self.prune_type = prune_type
        self.early_stop_mode = early_stop_mode
        self.early_stop_value = early_stop_value
        self.target_layer = {
            name: module
            for name, module in model.named_modules()
            if isinstance(module, nn.Conv1d | nn.Conv2d)
        }
        self.already_pruned = dict.fromkeys(self.target_layer, 0.0)
        self.sensitivities: Metrics = {}
        self._origin = _state_of(model)

    @property
    def layers_count(self) -> int:
        """Return the number of layers that are analysed by default."""
        return len(self.target_layer)

    def analysis(
        self,
        val_args: Sequence[object] | None = None,
        val_kwargs: Mapping[str, object] | None = None,
        specified_layers: Collection[str] | None = None,
    ) -> Metrics:
        """Measure the model with each layer alone at growing sparsities; return the metrics.

        Args:
            val_args: positional arguments of `val_func`, the model among them.
            val_kwargs: named arguments of `val_func`. Without any arguments it gets the model.
            specified_layers: names of the layers; None for all convolutions.

        Returns:
            Metrics by layer and sparsity. The sparsity counts what is left of a layer: of one that
            was pruned before by `a`, `a + (1 - a) s` is masked.

        Raises:
            ValueError: a layer is no convolution of the model.
        """
        layers = list(self.target_layer) if specified_layers is None else list(specified_layers)
        unknown = [name for name in layers if name not in self.target_layer]
        if unknown:
            known = ", ".join(self.target_layer)
            raise ValueError(f"specified_layers has {unknown[0]!r}; the convolutions are {known}")

        arguments = [self.model] if not val_args and not val_kwargs else val_args or []

        def evaluate() -> float:
            return self.val_func(*arguments, **(val_kwargs or {}))

        original = evaluate() if self.early_stop_mode in {"dropped", "raised"} else 0.0
        self.sensitivities = {}
        for name in layers:
            measured: dict[float, float] = {}
            for sparsity in self.sparsities:
                measured[sparsity] = self._measured(name, sparsity, evaluate)
                if self._ends(measured[sparsity], original):
                    break
            self.sensitivities[name] = measured
        return self.sensitivities

    def export(self, filepath: str | Path) -> None:
        """Write the metrics of the last analysis as CSV; raise ValueError if there are none.

        Args:
            filepath: file with the header `layername,<sparsities>` and a row for each layer, which
                is short where its measurements ended early.

        Raises:
            ValueError: there was no analysis.
        """
        if not self.sensitivities:
            raise ValueError("there is nothing to export; call analysis() first")
        with Path(filepath).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["layername", *self.sparsities])
            for name, measured in self.sensitivities.items():
                writer.writerow([name, *measured.values()])

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replace the parameters that every measurement starts from.

        Args:
            state_dict: state of the model, or a part of it.

        Raises:
            RuntimeError: a name or shape is not that of the model.
        """
        self.model.load_state_dict({**self._origin, **state_dict})
        self._origin = _state_of(self.model)

    def update_already_pruned(self, layername: str, ratio: float) -> None:
        """Set which part of a layer was pruned before; raise for an unknown layer or part.

        Args:
            layername: name of the layer.
            ratio: in [0, 1).

        Raises:
            ValueError: the layer is no convolution of the model, or the ratio is out of range.
        """
        if layername not in self.target_layer:
            raise ValueError(f"layername must be a convolution of the model, got {layername!r}")
        if not 0 <= ratio < 1:
            raise ValueError(f"ratio must be in [0, 1), got {ratio!r}")
        self.already_pruned[layername] = ratio

    def _measured(self, name: str, sparsity: float, evaluate: Callable[[], float]) -> float:
        already = self.already_pruned[name]
        ratio = already + (1 - already) * sparsity
        pruner = _PRUNERS[self.prune_type](
            self.model, [{"op_names": [name], "sparse_ratio": ratio}]
        )
        try:
            pruner.compress()
            return float(evaluate())
        finally:
            pruner.unwrap_model()
            self.model.load_state_dict(self._origin)

    def _ends(self, metric: float, original: float) -> bool:
        if self.early_stop_mode is None:
            return False
        if math.isnan(metric):
            return True
        value = cast("float", self.early_stop_value)  # both are given, or none
        match self.early_stop_mode:
            case "minimize":
                return metric < value
            case "maximize":
                return metric > value
            case "dropped":
                return metric < original - value
            case "raised":
                return metric > original + value


def _state_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
