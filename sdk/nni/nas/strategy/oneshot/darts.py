"""DARTS: gradient descent on a relaxation of all choices.

Source: Liu, Simonyan, Yang, DARTS: Differentiable Architecture Search, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytorch_lightning import LightningModule

from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights
from nni.nas.oneshot.pytorch.differentiable_modules import mixing_hook
from nni.nas.oneshot.pytorch.differentiable_training import DifferentiableLightningModule
from nni.nas.oneshot.pytorch.mixed_layer import mixing_layer_hook
from nni.nas.oneshot.pytorch.mixing_cell import MixingCell
from nni.nas.oneshot.pytorch.profiler import expectation_penalty
from nni.nas.oneshot.pytorch.supernet import MutationHook
from nni.nas.oneshot.pytorch.temperature import TemperatureSchedule
from nni.nas.strategy.oneshot.base import OneShotStrategy, only_loader


class DARTS(OneShotStrategy):
    """Search by gradient descent: every choice is a mixture of its alternatives.

    Each step learns the architecture by a batch of the validation loader, then the weights by one
    of the training loader; there is no separate validation. The exported architecture has the
    most probable value of each label.

    Supports `LayerChoice`, `InputChoice` (`sum`, `mean`), `Repeat` (depth from 1), `Cell`
    (`merge_op="all"`) and layers with mutable arguments.

    Args:
        arc_learning_rate: learning rate of the logits of the architecture.
        gradient_clip_val: largest norm of the gradient of the weights; None for no limit.
        log_prob_every_n_step: steps between two logs of the probabilities, `prob/<label>/<value>`.
        warmup_epochs: first epochs, in which only the weights are trained.
        penalty: penalty for the expected cost: `ExpectationProfilerPenalty` or its arguments.
        unrolled: true for the second-order gradient, through a virtual step of the weights; it
            costs about three times as much.
        mutation_hooks: see `OneShotStrategy`.

    Raises:
        TypeError: `penalty` is something else.
        ValueError: a number is outside its range.

    Examples:
        See `docs/nas-oneshot.md` for a whole search.

        >>> DARTS(arc_learning_rate=1e-3, unrolled=True).status.value
        'empty'
    """

    def __init__(
        self,
        *,
        arc_learning_rate: float = 3e-4,
        gradient_clip_val: float | None = None,
        log_prob_every_n_step: int = 10,
        warmup_epochs: int = 0,
        penalty: object = None,
        unrolled: bool = False,
        mutation_hooks: Iterable[MutationHook] | None = None,
    ) -> None:
        super().__init__(mutation_hooks)
        for name, value, least in (
            ("arc_learning_rate", arc_learning_rate, 0),
            ("log_prob_every_n_step", log_prob_every_n_step, 1),
            ("warmup_epochs", warmup_epochs, 0),
        ):
            if value < least:
                raise ValueError(f"{name} must be >= {least}, got {value}")
        self._options: dict[str, Any] = {
            "arc_learning_rate": arc_learning_rate,
            "gradient_clip_val": gradient_clip_val,
            "log_prob_every_n_step": log_prob_every_n_step,
            "warmup_epochs": warmup_epochs,
            "penalty": expectation_penalty(penalty),
            "unrolled": unrolled,
        }
        self._architecture: ArchitectureWeights | None = None
        self._temperature: TemperatureSchedule | None = None

    def new_architecture(self) -> ArchitectureWeights:
        """Return the logits of a new supernet, without any label.

        Returns:
            Weights; a subclass returns others.
        """
        return ArchitectureWeights()

    @property
    def architecture(self) -> ArchitectureWeights:
        """Logits of the supernet; raises RuntimeError before there are any.

        Raises:
            RuntimeError: no space was converted.
        """
        if self._architecture is None:
            raise RuntimeError(f"{type(self).__name__} has no supernet; call mutate_model first")
        return self._architecture

    def hook_arguments(self, model_space: Any) -> dict[str, Any]:  # noqa: ANN401 - any mutable module
        """Create the logits of the supernet; return them as an argument of the hooks."""
        del model_space
        self._architecture = self.new_architecture()
        return {"architecture": self._architecture}

    def default_mutation_hooks(self) -> list[MutationHook]:
        """Return the hooks that convert primitives to mixtures."""
        return [mixing_hook, mixing_layer_hook]

    def after_mutation(self, model_space: Any) -> None:  # noqa: ANN401 - any mutable module
        """Add the logits of all leaves outside of cells, such as those of the space itself."""
        of_cells = {
            label
            for module in model_space.modules()
            if isinstance(module, MixingCell)
            for label in module.simplify()
        }
        for label, leaf in model_space.simplify().items():
            if label not in of_cells:
                self.architecture.add_leaf(leaf)

    def _check_architecture(self) -> None:
        """Raise ValueError without a choice, or if a penalty needs probabilities that are not."""
        name, known = type(self).__name__, self.architecture.values
        if not known:
            raise ValueError(f"the model space of {name} must have a choice, got none")
        penalty = self._options["penalty"]
        unknown = [] if penalty is None else [one for one in penalty.labels if one not in known]
        if unknown:
            raise ValueError(
                f"penalty of {name} must depend on labels with probabilities, got "
                f"{', '.join(map(repr, unknown))}: labels of a Cell have none, nor have those of "
                "another space; use ENAS, whose penalty is that of a sample"
            )

    def configure_oneshot_module(
        self, training_module: LightningModule
    ) -> DifferentiableLightningModule:
        """Return the module that alternates steps of architecture and weights.

        Raises:
            ValueError: no choice has probabilities, or the penalty depends on others.
        """
        self._check_architecture()
        return DifferentiableLightningModule(
            training_module, self.architecture, temperature=self._temperature, **self._options
        )

    def train_dataloader(self, train: Any, val: Any) -> Any:  # noqa: ANN401 - any form of loaders
        """Return a dict of both loaders: a step reads a batch of each, the shorter one repeated."""
        return {"train": train, "val": only_loader(val, "val_dataloaders", type(self).__name__)}

    def val_dataloader(self, train: Any, val: Any) -> None:  # noqa: ANN401 - any form of loaders
        """Return None: the training reads all batches."""
        del train, val
