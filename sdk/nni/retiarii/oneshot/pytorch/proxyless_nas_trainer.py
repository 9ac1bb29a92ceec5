"""`ProxylessNasTrainer` of NAS 1.0, over the strategy `Proxyless`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

import nni
from nni.nas.strategy.oneshot import OneShotStrategy, Proxyless
from nni.retiarii.deprecation import warn_once
from nni.retiarii.oneshot.pytorch.supernet_trainer import LossModule, SupernetTrainer


class ProxylessNasTrainer(SupernetTrainer):
    """ProxylessNAS trainer of NAS 1.0, over `Proxyless`; may load and save weights.

    Args:
        model: network with choices among layers.
        model_optim: optimizer of its weights.
        device: where it is trained.
        train_loader: loader that trains weights.
        valid_loader: loader that trains the architecture.
        label_smoothing: of the cross-entropy.
        n_epochs: number of epochs.
        init_lr: learning rate of the weights, which the optimizer gets.
        binary_mode: `two`, `full` or `full_v2`; without effect: one path is computed, and the
            others again for the gradient, as `full_v2` says.
        arch_init_type: `normal` or `uniform`; without effect, and so the next three.
        arch_init_ratio: deviation of the first logits.
        arch_weight_decay: of the optimizer of the architecture.
        grad_update_arch_param_every: batches between two updates of the architecture.
        arch_optim_lr: learning rate of the architecture.
        grad_update_steps: without effect: one step is made at each batch.
        warmup: whether there are epochs in which only the weights are trained.
        warmup_epochs: their number.
        arch_valid_frequency: without effect.
        load_ckpt: whether the weights of `ckpt_path` are loaded first.
        ckpt_path: file of the weights, which are saved there after the training; None for none.
        arch_path: file of the architecture, which is saved there after the training; None for none.

    Raises:
        ValueError: an argument is unknown, or `ckpt_path` is missing.
        pickle.UnpicklingError: the file of the weights holds something else.
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        model_optim: Optimizer,
        device: torch.device | str | None,
        train_loader: Any,  # noqa: ANN401 - as Lightning takes them
        valid_loader: Any,  # noqa: ANN401 - as above
        label_smoothing: float = 0.1,
        n_epochs: int = 120,
        init_lr: float = 0.025,
        binary_mode: Literal["two", "full", "full_v2"] = "full_v2",
        arch_init_type: Literal["normal", "uniform"] = "normal",
        arch_init_ratio: float = 1e-3,
        arch_optim_lr: float = 1e-3,
        arch_weight_decay: float = 0,
        grad_update_arch_param_every: int = 5,
        grad_update_steps: int = 1,
        warmup: bool = True,  # noqa: FBT001, FBT002 - documented signature
        warmup_epochs: int = 25,
        arch_valid_frequency: int = 1,
        load_ckpt: bool = False,  # noqa: FBT001, FBT002 - documented signature
        ckpt_path: str | Path | None = None,
        arch_path: str | Path | None = None,
    ) -> None:
        del arch_init_ratio, arch_weight_decay, grad_update_arch_param_every, grad_update_steps
        del arch_valid_frequency
        warn_once("oneshot.pytorch.ProxylessNasTrainer", "nni.nas.strategy.Proxyless")
        for name, value, known in (
            ("binary_mode", binary_mode, ("two", "full", "full_v2")),
            ("arch_init_type", arch_init_type, ("normal", "uniform")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {known}, got {value!r}")
        if load_ckpt:
            if ckpt_path is None:
                raise ValueError("ckpt_path must be given with load_ckpt=True, got None")
            # Weights alone: a file of others may hold code.
            weights = torch.load(Path(ckpt_path), map_location="cpu", weights_only=True)
            model.load_state_dict(weights)
        for group in model_optim.param_groups:
            group["lr"] = init_lr
        loss = nn.CrossEntropyLoss(label_smoothing=label_smoothing)
        super().__init__(model, LossModule(loss, lambda *_: {}, model_optim), n_epochs, device)
        self._loaders = (train_loader, valid_loader)
        self._options: dict[str, Any] = {
            "arc_learning_rate": arch_optim_lr,
            "warmup_epochs": warmup_epochs if warmup else 0,
        }
        self._ckpt_path = ckpt_path
        self._arch_path = arch_path

    def new_strategy(self) -> OneShotStrategy:
        """Return the strategy that searches."""
        return Proxyless(**self._options)

    def loaders(self) -> tuple[Any, Any]:
        """Return the loaders of the user."""
        return self._loaders

    def train(self) -> None:
        """Train and search; save weights and architecture where paths were given."""
        self.fit()
        if self._ckpt_path is not None:
            torch.save(self.model.state_dict(), self._ckpt_path)
        if self._arch_path is not None:
            self.export(self._arch_path)

    def export(self, file_name: str | Path | None = None) -> dict[str, Any]:
        """Return the preferred architecture by label; write it as JSON if a file is given.

        Args:
            file_name: JSON file to write it to, as `fixed_arch` reads it; None for none.
        """
        architecture = super().export()
        if file_name is not None:
            Path(file_name).write_text(nni.dump(architecture), "utf-8")
        return architecture
