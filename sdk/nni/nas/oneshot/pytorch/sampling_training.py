"""Training of a supernet that computes one random architecture in each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.model_helpers import is_overridden
from torch import Tensor

from nni.mutable import Sample
from nni.nas.oneshot.pytorch.architecture import SampledPath
from nni.nas.oneshot.pytorch.path_sampling import UniformSampler
from nni.nas.oneshot.pytorch.training import (
    OPTIMIZATION_HOOKS,
    BaseOneShotLightningModule,
    step_output,
    trainable,
)

STATE = "nni_sampler"
"""Key of the state of the random numbers in a checkpoint."""


class SamplingLightningModule(BaseOneShotLightningModule):
    """Training that computes a random architecture in each training and validation step.

    Optimization is that of the inner module, automatic or manual.

    Args:
        training_module: module of the evaluator.
        path: sample that the supernet computes.
        sampler: source of architectures.
    """

    def __init__(
        self, training_module: LightningModule, path: SampledPath, sampler: UniformSampler
    ) -> None:
        super().__init__(training_module)
        self.automatic_optimization = training_module.automatic_optimization
        self.path = path
        self.sampler = sampler
        for name in OPTIMIZATION_HOOKS:
            if is_overridden(name, training_module):
                vars(self)[name] = getattr(training_module, name)

    def training_step(self, *args: Any) -> Any:  # noqa: ANN401 - of the inner module
        """Draw a random architecture; return the output of the inner module for it."""
        self.path.sample = self.sampler.draw()
        output = step_output(self.training_module.training_step, *args)
        if isinstance(output, Mapping):
            return {**output, "loss": trainable(output["loss"])}
        return trainable(output) if isinstance(output, Tensor) else output

    def validation_step(self, *args: Any) -> Any:  # noqa: ANN401 - of the inner module
        """Draw a random architecture; return the result of the inner module's validation step."""
        self.path.sample = self.sampler.draw()
        return super().validation_step(*args)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the random state to `checkpoint`, then call the inner module's hook."""
        version, numbers, gauss = self.sampler.state
        checkpoint[STATE] = [version, numbers, gauss]
        self.training_module.on_save_checkpoint(checkpoint)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the random numbers, if saved, then call the inner module's hook."""
        if STATE in checkpoint:
            self.sampler.state = tuple(checkpoint[STATE])
        self.training_module.on_load_checkpoint(checkpoint)

    def export(self) -> Sample:
        """Return a random architecture: this search prefers none."""
        return self.sampler.draw()
