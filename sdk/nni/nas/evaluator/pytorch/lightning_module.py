"""Lightning module whose network is set afterwards: the candidate of a search."""

from typing import Any

import pytorch_lightning
from torch import nn


class LightningModule(pytorch_lightning.LightningModule):
    """Training logic without a network; the evaluator sets each candidate in turn.

    A subclass is decorated by `nni.trace` and uses `self.model` in its steps, not in its
    constructor. It reports metrics itself: intermediate results in `on_validation_epoch_end`, the
    result in `teardown("fit")`. `SupervisedLearningModule` does so already.

    Args:
        *args: those of `pytorch_lightning.LightningModule`.
        **kwargs: as above.

    Examples:
        >>> import nni, torch
        >>> from torch import nn
        >>> @nni.trace
        ... class Autoencoder(LightningModule):
        ...     def training_step(self, batch, batch_idx):
        ...         return nn.functional.mse_loss(self.model(batch), batch)
        ...     def configure_optimizers(self):
        ...         return torch.optim.Adam(self.parameters(), 1e-3)
        >>> module = Autoencoder()
        >>> module.set_model(nn.Linear(2, 2))
        >>> module.training_step(torch.zeros(1, 2), 0).ndim
        0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of Lightning
        super().__init__(*args, **kwargs)

    def set_model(self, model: nn.Module) -> None:
        """Set the network to train; it replaces an earlier one.

        Args:
            model: network.

        Raises:
            TypeError: `model` is no network.
        """
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        self._modules["model"] = model

    @property
    def model(self) -> Any:  # noqa: ANN401 - a network with any methods
        """Network that is trained now; raises RuntimeError before one is set.

        Raises:
            RuntimeError: none is set yet.
        """
        model = self._modules.get("model")
        if model is None:
            raise RuntimeError(
                f"{type(self).__name__} has no model yet: set_model is called after the "
                "constructor; use self.model in configure_optimizers and in the steps"
            )
        return model
