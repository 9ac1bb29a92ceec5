"""Evaluator whose trainings distil."""

from collections.abc import Callable, Mapping

from torch import nn

from nni.compression.base.evaluator import Evaluator


class DistillingEvaluator(Evaluator):
    """Evaluator that trains by another one, with the distances of a distiller in the loss.

    Args:
        evaluator: trains and evaluates the student.
        patch: adds the distances to the loss of the other evaluator, at each binding.
    """

    def __init__(self, evaluator: Evaluator, patch: Callable[[Evaluator], object]) -> None:
        super().__init__(evaluator.get_dummy_input())
        self._inner = evaluator
        self._patch = patch

    @property
    def can_evaluate(self) -> bool:  # noqa: D102 - see the base
        return self._inner.can_evaluate

    def prepare(self, model: nn.Module) -> None:
        """Bind the other evaluator to a model; patch its loss and optimizer step.

        Args:
            model: the student.
        """
        self._inner.bind_model(model)
        try:
            self._patch(self._inner)
            self._inner.patch_loss(self._patched)
            self._inner.patch_optimizer_step(
                [lambda: self.run_tasks(self._before)], [lambda: self.run_tasks(self._after)]
            )
        except BaseException:
            self._inner.unbind_model()
            raise

    def release(self) -> None:  # noqa: D102 - see the base
        self._inner.unbind_model()

    def patch_optim_param_group(self, group: Mapping[str, object]) -> None:
        """Add parameters to the optimizer of the wrapped evaluator.

        Args:
            group: `params` and hyperparameters.

        Raises:
            RuntimeError: no model is bound.
        """
        self._inner.patch_optim_param_group(group)

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Train by the wrapped evaluator, until the first of two limits.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.
        """
        self._inner.train(max_steps, max_epochs)

    def finetune(self) -> None:
        """Train by the wrapped evaluator, without limits.

        Raises:
            RuntimeError: no model is bound.
        """
        self._inner.finetune()

    def run_evaluation(self) -> object:
        """Return the metric of the wrapped evaluator.

        Returns:
            Its metric.
        """
        return self._inner.evaluate()
