"""FBNet of NAS 1.0: a table of costs, and a trainer over the strategy `GumbelDARTS`.

Source: Wu et al., FBNet: Hardware-Aware Efficient ConvNet Design via Differentiable Neural
Architecture Search, 2019, equations 2 to 5.
Departures: the logarithm is that of one plus the cost, which is positive for any cost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import nni
from nni.mutable import MutableExpression
from nni.nas.nn.pytorch import LayerChoice
from nni.nas.oneshot.pytorch.profiler import ExpectationProfilerPenalty
from nni.nas.profiler.pytorch import LatencyTable, ShapeTensor
from nni.nas.profiler.pytorch.flops import count_flops_params
from nni.nas.strategy.oneshot import GumbelDARTS, OneShotStrategy
from nni.retiarii.deprecation import warn_once
from nni.retiarii.oneshot.pytorch.supernet_trainer import Loss, LossModule, SupernetTrainer

Primitive = Callable[[int, int, int, int], nn.Module]
"""Function of input channels, output channels, expansion (1) and stride."""
TABLE: str = "lut.json"
"""Name of the file of a table in `model_dir`."""


@dataclass
class NASConfig:
    """Configuration of FBNet in NAS 1.0: cost table, penalty, schedule, layers of the space."""

    perf_metric: Literal["flops", "latency"] = "flops"
    """Cost of a layer: operations, or milliseconds on this machine."""
    lut_load: bool = False
    """Whether the table is read from `model_dir`, instead of being made."""
    model_dir: str | Path | None = None
    """Folder of the table and the weights; None: nothing is written."""
    nas_lr: float = 0.01
    """Learning rate of the architecture."""
    nas_weight_decay: float = 5e-4
    """Without effect: that of `GumbelDARTS` counts."""
    mode: Literal["mul", "add"] = "mul"
    """Whether the penalty is multiplied with the loss, or added to it."""
    alpha: float = 0.25
    """Weight of the penalty."""
    beta: float = 0.6
    """Exponent of the logarithm of the cost."""
    start_epoch: int = 50
    """First epochs, in which only the weights are trained."""
    init_temperature: float = 5.0
    """Temperature at the start."""
    exp_anneal_rate: float = math.exp(-0.045)
    """Factor of the temperature in each epoch."""
    search_space: dict[str, Any] = field(default_factory=dict)
    """For each layer `input_shape` (channels, height, width), `channel_size` and `strides`."""


class LookUpTable:
    """Table of each operator's cost in each layer, measured (and saved) or read from a file.

    Args:
        config: configuration, whose search space lists the layers.
        primitives: operator by name.

    Attributes:
        lut_ops: for each layer, functions without arguments that return a new operator, by name.
        lut_perf: for each layer, costs by name.
        layer_num: number of layers.

    Raises:
        ValueError: the configuration has an unknown value, or lacks one; or the table that is read
            has other layers or operators.
    """

    def __init__(self, config: NASConfig, primitives: Mapping[str, Primitive]) -> None:
        warn_once("oneshot.pytorch.LookUpTable", "nni.nas.profiler.pytorch.LatencyTable")
        _check_config(config)
        space = config.search_space
        self.config = config
        self._shapes = [tuple(shape) for shape in space["input_shape"]]
        self.layer_num = len(self._shapes)
        self.lut_ops = [
            {name: _operator(build, shape[0], channels, stride) for name, build in named}
            for shape, channels, stride, named in zip(
                self._shapes,
                space["channel_size"],
                space["strides"],
                [list(primitives.items())] * self.layer_num,
                strict=True,
            )
        ]
        self.lut_perf: list[dict[str, float]] = self._read() if config.lut_load else self._measure()

    def _read(self) -> list[dict[str, float]]:
        assert self.config.model_dir is not None
        path = Path(self.config.model_dir) / TABLE
        table: list[dict[str, float]] = json.loads(path.read_text("utf-8"))
        if [list(row) for row in table] != [list(row) for row in self.lut_ops]:
            raise ValueError(f"{path} must have the layers and operators of the search space")
        return table

    def _measure(self) -> list[dict[str, float]]:
        latency = LatencyTable()

        def cost(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> float:
            inputs = ShapeTensor((1, *shape))
            if self.config.perf_metric == "latency":
                return latency.measure(build(), [inputs])
            return float(count_flops_params(build(), torch.zeros(1, *shape)).flops)

        table = [
            {name: cost(build, shape) for name, build in row.items()}
            for row, shape in zip(self.lut_ops, self._shapes, strict=True)
        ]
        if self.config.model_dir is not None:
            folder = Path(self.config.model_dir)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / TABLE).write_text(json.dumps(table, indent=1), "utf-8")
        return table

    def expression(self, model: nn.Module) -> MutableExpression:
        """Return the cost of a network as an expression of its choices.

        Args:
            model: network with one choice among layers for each layer of the table, in its order;
                candidates have the names of operators, or their order.

        Raises:
            ValueError: the network has another number of choices.
        """
        choices = [one for one in model.modules() if isinstance(one, LayerChoice)]
        if len(choices) != self.layer_num:
            raise ValueError(
                f"model must have {self.layer_num} choices among layers, as the table has layers, "
                f"got {len(choices)}"
            )
        total: Any = 0.0
        for choice, row in zip(choices, self.lut_perf, strict=True):
            by_position = dict(zip(choice.names, row.values(), strict=True))
            costs = {name: row.get(str(name), by_position[name]) for name in choice.names}
            total = total + MutableExpression.switch_case(choice.choice, costs)
        expression: MutableExpression = total
        return expression


@dataclass(frozen=True, slots=True)
class TableProfiler:
    """Profiler of a table of costs, which evaluates their expression for a sample."""

    expression: MutableExpression
    """Cost as a function of the labels."""

    def profile(self, sample: dict[str, Any]) -> float:
        """Return the cost of a sample."""
        return float(self.expression.freeze(sample))


class LogarithmicPenalty(ExpectationProfilerPenalty):
    """Penalty of FBNet: a power of the logarithm of the expected cost.

    Args:
        profiler: profiler of a table.
        config: mode, alpha and beta.
    """

    def __init__(self, profiler: TableProfiler, config: NASConfig) -> None:
        super().__init__(profiler, baseline=1.0)
        self.config = config

    def __call__(self, loss: Tensor, architecture: Any) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: ANN401 - probabilities
        """Return the loss times or plus the penalty, by `mode`, and its detached parts by name."""
        cost = self.cost(architecture).to(loss.device)
        penalty = self.config.alpha * torch.log1p(cost) ** self.config.beta
        total = loss * penalty if self.config.mode == "mul" else loss + penalty
        details = {"loss_original": loss, "penalty": cost, "loss_final": total}
        return total, {name: value.detach() for name, value in details.items()}


@dataclass(frozen=True, slots=True)
class ExponentialTemperature:
    """Temperature that falls by a factor in each epoch."""

    init: float
    """Temperature at the start."""
    rate: float
    """Factor of an epoch."""

    def at(self, epoch: int, total: int) -> float:
        """Return the temperature of an epoch."""
        del total
        return self.init * self.rate**epoch


class FBNetTrainer(SupernetTrainer):
    """FBNet trainer of NAS 1.0, over `GumbelDARTS` with a penalty by a table of costs.

    Args:
        model: network with one choice among layers for each layer of the table.
        model_optim: optimizer of its weights.
        criterion: function of logits and targets that returns a loss.
        device: where it is trained.
        device_ids: without effect: one device is used.
        lookup_table: costs, and the configuration.
        train_loader: loader that trains weights.
        valid_loader: loader that trains the architecture.
        n_epochs: number of epochs.
        load_ckpt: without effect; load the weights before.
        arch_path: JSON file of the architecture, which is saved there after the training.
        logger: without effect: the module logs by the standard library.
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        model_optim: Optimizer,
        criterion: Loss,
        device: torch.device | str | None,
        device_ids: object,
        lookup_table: LookUpTable,
        train_loader: Any,  # noqa: ANN401 - as Lightning takes them
        valid_loader: Any,  # noqa: ANN401 - as above
        n_epochs: int = 120,
        load_ckpt: bool = False,  # noqa: FBT001, FBT002 - documented signature
        arch_path: str | Path | None = None,
        logger: object = None,
    ) -> None:
        del device_ids, load_ckpt, logger
        warn_once("oneshot.pytorch.FBNetTrainer", "nni.nas.strategy.GumbelDARTS")
        module = LossModule(criterion, lambda *_: {}, model_optim)
        super().__init__(model, module, n_epochs, device)
        self._loaders = (train_loader, valid_loader)
        self._config = lookup_table.config
        self._penalty = LogarithmicPenalty(
            TableProfiler(lookup_table.expression(model)), self._config
        )
        self._arch_path = arch_path

    def new_strategy(self) -> OneShotStrategy:
        """Return a new `GumbelDARTS` with the configuration's penalty, warm-up and temperature."""
        config = self._config
        return GumbelDARTS(
            arc_learning_rate=config.nas_lr,
            warmup_epochs=config.start_epoch,
            penalty=self._penalty,
            temperature=ExponentialTemperature(config.init_temperature, config.exp_anneal_rate),
        )

    def loaders(self) -> tuple[Any, Any]:
        """Return the loaders of the user."""
        return self._loaders

    def train(self) -> None:
        """Train and search; save the architecture where a path was given."""
        self.fit()
        if self._arch_path is not None:
            Path(self._arch_path).write_text(nni.dump(self.export()), "utf-8")


def _check_config(config: NASConfig) -> None:
    """Raise ValueError unless the configuration has all that a table needs."""
    for name, value, known in (
        ("perf_metric", config.perf_metric, ("flops", "latency")),
        ("mode", config.mode, ("mul", "add")),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}")
    if config.lut_load and config.model_dir is None:
        raise ValueError("model_dir must be given with lut_load=True, got None")
    for name in ("input_shape", "channel_size", "strides"):
        if name not in config.search_space:
            raise ValueError(
                f"search_space must have {name!r} with an entry for each layer, got "
                f"{sorted(config.search_space)}"
            )


def _operator(
    build: Primitive, in_channels: int, out_channels: int, stride: int
) -> Callable[[], nn.Module]:
    return lambda: build(in_channels, out_channels, 1, stride)
