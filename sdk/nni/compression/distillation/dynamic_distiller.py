"""Distiller that compares each output with the nearest linked one."""

from collections.abc import Mapping

import torch
from torch import Tensor

from nni.compression.config.distillation_settings import DistillationSettings
from nni.compression.distillation.distiller import Distiller
from nni.compression.distillation.losses import distance


class DynamicLayerwiseDistiller(Distiller):
    """Distiller in which each output approaches the nearest of its linked ones.

    Of several links, the one with the smallest distance counts in each training step.

    Args:
        model: the student.
        config_list: modules of the student, links and distances; not changed.
        evaluator: trains the student.
        teacher_model: the teacher, on any device; it is not changed.
        teacher_predict: `(batch, teacher_model)`; runs the teacher on a batch of the training.
        origin_loss_lambda: factor of the loss of the evaluator, >= 0.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument has another type.
        ValueError: student and teacher share a parameter, or the factor is out of range.

    Source: Xia et al., Structured Pruning Learns Compact and Accurate Models, 2022, section 3.2.

    Departures: layers may be linked freely, and there is no trained map between them.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.distillation import DynamicLayerwiseDistiller
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.eye(2), model).backward()
        ...         optimizer.step()
        >>> student, teacher = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
        >>> optimizer = torch.optim.SGD(student.parameters(), lr=0.5)
        >>> evaluator = TorchEvaluator(train, optimizer, lambda batch, model: model(batch).sum())
        >>> distiller = DynamicLayerwiseDistiller(
        ...     student,
        ...     [{"op_types": ["Linear"], "lambda": 2.0, "link": "auto", "apply_method": "mse"}],
        ...     evaluator,
        ...     teacher,
        ...     lambda batch, model: model(batch),
        ...     origin_loss_lambda=0.0,
        ... )
        >>> student = distiller.compress(max_steps=200)
        >>> torch.allclose(student(torch.eye(2)), teacher(torch.eye(2)), atol=1e-4)
        True
    """

    def output_distance(  # noqa: D102 - see the base
        self,
        target: tuple[str, str],
        settings: DistillationSettings,
        student: Tensor,
        teachers: Mapping[str, Tensor],
    ) -> Tensor:
        found = []
        for link, teacher in teachers.items():
            if student.shape != teacher.shape:
                name, output = target
                raise ValueError(
                    f"{output} of {name} has shape {tuple(student.shape)}, but that of {link} of "
                    f"the teacher {tuple(teacher.shape)}; link an output of the same shape, or use "
                    "Adaptive1dLayerwiseDistiller if only the last dimension differs"
                )
            found.append(distance(settings.apply_method, student, teacher))
        return torch.stack(found).min()
