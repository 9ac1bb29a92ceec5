"""Distiller that learns to map outputs of the student to the size of the teacher's."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.model_runs import eval_mode
from nni.compression.config.distillation_settings import DistillationSettings
from nni.compression.config.settings import ConfigListError
from nni.compression.distillation.distiller import Distiller, TeacherPredict
from nni.compression.distillation.losses import distance
from nni.compression.distillation.outputs import OutputRecord, plain_modules


class Adaptive1dLayerwiseDistiller(Distiller):
    """Distiller with trained linear maps between outputs whose last dimensions differ.

    Call `track_forward` once before `compress`, which finds the sizes. The maps are trained by the
    optimizer of the student, with its default hyperparameters.

    Args:
        model: the student.
        config_list: modules of the student, each with one link, and distances; not changed.
        evaluator: trains the student.
        teacher_model: the teacher, on any device; it is not changed.
        teacher_predict: `(batch, teacher_model)`; runs the teacher on a batch of the training.
        origin_loss_lambda: factor of the loss of the evaluator, >= 0.

    Raises:
        ConfigListError: the configuration breaks a rule, or an output has several links.
        TypeError: an argument has another type.
        ValueError: student and teacher share a parameter, or the factor is out of range.

    Source: Jiao et al., TinyBERT: Distilling BERT for Natural Language Understanding, 2020,
        section 3.1.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.distillation import Adaptive1dLayerwiseDistiller
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.eye(2), model).backward()
        ...         optimizer.step()
        >>> student, teacher = nn.Sequential(nn.Linear(2, 3)), nn.Sequential(nn.Linear(2, 8))
        >>> optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(train, optimizer, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["Linear"]}]
        >>> distiller = Adaptive1dLayerwiseDistiller(
        ...     student, config_list, evaluator, teacher, lambda batch, model: model(batch)
        ... )
        >>> distiller.track_forward(torch.eye(2))
        >>> student = distiller.compress(max_steps=2)
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        evaluator: Evaluator,
        teacher_model: nn.Module,
        teacher_predict: TeacherPredict,
        origin_loss_lambda: float = 1.0,
    ) -> None:
        super().__init__(
            model, config_list, evaluator, teacher_model, teacher_predict, origin_loss_lambda
        )
        for name, targets in self._plan.items():
            for settings in targets.values():
                if len(settings.link) > 1:
                    raise ConfigListError(
                        "config_list",
                        f"links {name} to {', '.join(settings.link)}; Adaptive1dLayerwiseDistiller "
                        "needs one link for each output",
                    )
        self._maps: dict[tuple[str, str], nn.Linear] | None = None

    def track_forward(self, *args: object, **kwargs: object) -> None:
        """Run both models once in eval mode; make the maps between outputs of different size.

        Neither model is changed, nor are gradients computed.

        Args:
            args: positional arguments of both models.
            kwargs: named arguments of both models.

        Raises:
            RuntimeError: a selected module is not called.
            ValueError: outputs differ in more than the last dimension.
        """
        student, teacher = (OutputRecord(with_gradients_only=False) for _ in range(2))
        device = next((one.device for one in self.bound_model.parameters()), torch.device("cpu"))
        with ExitStack() as hooks, torch.no_grad(), eval_mode(self.bound_model):
            for handle in (
                *student.hooks(_chosen(self.bound_model, self._plan)),
                *teacher.hooks(_chosen(self.teacher_model, self._links())),
            ):
                hooks.callback(handle.remove)
            self.bound_model(*args, **kwargs)
            self.run_teacher(lambda: self.teacher_model(*args, **kwargs), device)
        self._maps = self._new_maps(student, teacher, device)

    def trained_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the maps; raise RuntimeError before `track_forward`.

        Returns:
            Weight and bias of each map.

        Raises:
            RuntimeError: `track_forward` was not called.
        """
        if self._maps is None:
            raise RuntimeError("call track_forward(example inputs) before the training")
        return [one for linear in self._maps.values() for one in linear.parameters()]

    def output_distance(  # noqa: D102 - see the base
        self,
        target: tuple[str, str],
        settings: DistillationSettings,
        student: Tensor,
        teachers: Mapping[str, Tensor],
    ) -> Tensor:
        (teacher,) = teachers.values()
        linear = (self._maps or {}).get(target)
        mapped = student if linear is None else linear.to(student.device)(student)
        return distance(settings.apply_method, mapped, teacher)

    def _links(self) -> set[str]:
        return {one.link[0] for targets in self._plan.values() for one in targets.values()}

    def _new_maps(
        self, students: OutputRecord, teachers: OutputRecord, device: torch.device
    ) -> dict[tuple[str, str], nn.Linear]:
        found = {}
        for name, targets in self._plan.items():
            for target, settings in targets.items():
                (link,) = settings.link
                student = self._called(students, name, target, "the student")[0].shape
                teacher = self._called(teachers, link, target, "the teacher")[0].shape
                if student[:-1] != teacher[:-1]:
                    raise ValueError(
                        f"{target} of {name} has shape {tuple(student)}, but that of {link} of the "
                        f"teacher {tuple(teacher)}; only the last dimension may differ"
                    )
                if student != teacher:
                    found[name, target] = nn.Linear(student[-1], teacher[-1], device=device)
        return found


def _chosen(model: nn.Module, names: Mapping[str, object] | set[str]) -> dict[str, nn.Module]:
    modules = plain_modules(model)
    return {name: modules[name] for name in sorted(names)}
