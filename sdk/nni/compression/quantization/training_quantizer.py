"""Base of the quantizers with which a model is trained."""

from collections.abc import Mapping

from torch import nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.fusion import train_together
from nni.compression.quantization.calibration import CalibrationConfig
from nni.compression.quantization.quantizer import Quantizer


class TrainingQuantizer(Quantizer):
    """Base of quantizers that train with the model: by an evaluator, or by the user."""

    def compress(
        self, max_steps: int | None = None, max_epochs: int | None = None
    ) -> tuple[nn.Module, CalibrationConfig]:
        """Wrap the model; train it quantized if there is an evaluator; return it, calibrated.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit. If both are None, the training takes
                as long as a fine-tuning does.

        Returns:
            The model, wrapped, and how each target is quantized. Without an evaluator the model is
            not trained here: train it, and call `step_with_optimizer` after each optimizer step.

        Raises:
            ValueError: a limit is given without an evaluator.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.quantization import QATQuantizer
            >>> config_list = [{"op_types": ["Linear"], "target_names": ["weight"]}]
            >>> quantizer = QATQuantizer(nn.Sequential(nn.Linear(2, 2)), config_list)
            >>> model, calibration = quantizer.compress()
            >>> calibration["0"]["weight"]["quant_dtype"]
            'int8'
        """
        evaluator = self.evaluator
        if evaluator is None and (max_steps is not None or max_epochs is not None):
            raise ValueError(
                "max_steps and max_epochs need an evaluator; pass one to the quantizer"
            )
        self.wrap_model()
        if evaluator is not None:
            self._train(evaluator, max_steps, max_epochs)
        return self.bound_model, self.get_calibration_config()

    def parameter_group(self) -> Mapping[str, object] | None:
        """Return the parameters that the algorithm learns, for the optimizer; None for none."""
        return None

    def _train(self, evaluator: Evaluator, max_steps: int | None, max_epochs: int | None) -> None:
        train_together(self.members(), evaluator, self.bound_model, max_steps, max_epochs)

    def join_training(self, evaluator: Evaluator) -> None:
        """Add the parameters that the algorithm learns, and count the steps.

        Args:
            evaluator: has the model.
        """
        group = self.parameter_group()
        if group is not None:
            evaluator.patch_optim_param_group(group)
        evaluator.patch_optimizer_step([], [self.step_with_optimizer])
