"""Base of all distillers: distances between outputs join the loss of a training."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_evaluator
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.fusion import TrainingMember, fused_arguments, train_together
from nni.compression.base.model_runs import eval_mode
from nni.compression.base.wrapper_set import WrapperSet
from nni.compression.config.distillation_plan import distillation_plan
from nni.compression.config.distillation_settings import DistillationSettings
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import check_number
from nni.compression.distillation.distilling_evaluator import DistillingEvaluator
from nni.compression.distillation.outputs import OutputRecord, plain_modules, unwrapped

TeacherPredict = Callable[[Any, nn.Module], object]
"""`(batch, teacher_model)`; runs the teacher on a batch, the result does not matter."""


class Distiller(TrainingMember):
    """Base of distillers: a student's training in which module outputs approach a teacher's.

    The loss becomes `origin_loss_lambda` times the loss of the evaluator, plus `lambda` times the
    distance of each selected output. The student may be wrapped by a pruner or quantizer; names
    are those without wrappers. The teacher runs in eval mode, without gradients, once for each
    loss.

    A distiller of one's own implements `output_distance`.

    Args:
        model: the student.
        config_list: modules of the student, links and distances; not changed.
        evaluator: trains the student.
        teacher_model: the teacher, on any device; it is not changed.
        teacher_predict: `(batch, teacher_model)`; runs the teacher on a batch of the training.
        origin_loss_lambda: factor of the loss of the evaluator, >= 0.

    Attributes:
        bound_model: the student.
        config_list: copies of the entries.
        evaluator: see above.
        teacher_model: see above.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument has another type.
        ValueError: student and teacher share a parameter, or the factor is out of range.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.distillation import Distiller
        >>> class AbsoluteDistiller(Distiller):
        ...     def output_distance(self, target, settings, student, teachers):
        ...         return sum((student - teacher).abs().mean() for teacher in teachers.values())
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.eye(2), model).backward()
        ...         optimizer.step()
        >>> student, teacher = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
        >>> optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(train, optimizer, lambda batch, model: model(batch).sum())
        >>> distiller = AbsoluteDistiller(
        ...     student,
        ...     [{"op_names": ["0"]}],
        ...     evaluator,
        ...     teacher,
        ...     teacher_predict=lambda batch, model: model(batch),
        ... )
        >>> distiller.compress(max_steps=2) is student
        True
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
        _check_models(model, teacher_model)
        check_evaluator(evaluator)
        if not callable(teacher_predict):
            raise TypeError(f"teacher_predict must be a function, got {teacher_predict!r}")
        check_number(
            origin_loss_lambda,
            "origin_loss_lambda",
            "that is finite and >= 0",
            lambda one: 0 <= one < math.inf,
        )
        self._model = model
        self.config_list = [dict(entry) for entry in config_list]
        self.evaluator: Evaluator = evaluator
        self.teacher_model = teacher_model
        self._teacher_predict = teacher_predict
        self._origin_loss_lambda = float(origin_loss_lambda)
        self._plan = distillation_plan(config_list, _infos(model), _infos(teacher_model))
        self._student = OutputRecord(with_gradients_only=True)
        self._teacher = OutputRecord(with_gradients_only=False)

    @classmethod
    def from_compressor(
        cls,
        compressor: TrainingMember,
        new_config_list: Sequence[Mapping[str, object]],
        *args: Any,  # noqa: ANN401 - those of the constructor
        **kwargs: Any,  # noqa: ANN401
    ) -> Self:
        """Make a distiller whose student is another compressor's model, trained with it.

        `compress` trains once, with all compressors: masks are made and held, targets are
        quantized, and the distances are part of the loss.

        Args:
            compressor: a pruner, quantizer, schedule or distiller.
            new_config_list: entries of the distiller; not changed.
            args: arguments of the constructor after the evaluator: teacher, `teacher_predict` and
                `origin_loss_lambda`.
            kwargs: named arguments of the constructor; `evaluator` is that of `compressor` if left
                out.

        Returns:
            The distiller.

        Raises:
            ConfigListError: the configuration breaks a rule.
            TypeError: an argument is missing or has another type.

        Examples:
            >>> import copy
            >>> import torch
            >>> from torch import nn
            >>> from nni.compression import TorchEvaluator
            >>> from nni.compression.distillation import DynamicLayerwiseDistiller
            >>> from nni.compression.pruning import L1NormPruner
            >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
            ...     for _ in range(max_steps):
            ...         optimizer.zero_grad()
            ...         step(torch.eye(2), model).backward()
            ...         optimizer.step()
            >>> student = nn.Sequential(nn.Linear(2, 2))
            >>> teacher = copy.deepcopy(student)
            >>> optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
            >>> def loss(batch, model):
            ...     return model(batch).sum()
            >>> evaluator = TorchEvaluator(train, optimizer, loss)
            >>> entry = {"op_types": ["Linear"], "sparse_ratio": 0.5}
            >>> pruner = L1NormPruner(student, [entry], evaluator)
            >>> distiller = DynamicLayerwiseDistiller.from_compressor(
            ...     pruner, [{"op_types": ["Linear"]}], teacher, lambda batch, model: model(batch)
            ... )
            >>> student = distiller.compress(max_steps=2)
            >>> int(pruner.get_masks()["0"]["bias"].sum())
            1
        """
        arguments = fused_arguments(cls, compressor.evaluator, args, kwargs)
        made = cls(compressor.bound_model, new_config_list, **arguments)
        made._earlier = compressor
        return made

    @property
    def bound_model(self) -> nn.Module:
        """Return the student.

        Returns:
            The student.
        """
        return self._model

    @property
    def shared_wrappers(self) -> WrapperSet | None:
        """Return the wrappers of the compressors it is fused with; None if it is not fused.

        Returns:
            The set; None if there is none.
        """
        return None if self._earlier is None else self._earlier.shared_wrappers

    @abstractmethod
    def output_distance(
        self,
        target: tuple[str, str],
        settings: DistillationSettings,
        student: Tensor,
        teachers: Mapping[str, Tensor],
    ) -> Tensor:
        """Return a student output's distance from linked teacher outputs, unweighted.

        Args:
            target: module and target name of the student.
            settings: its settings.
            student: the output.
            teachers: the linked outputs of the teacher, by module name.

        Returns:
            A scalar.

        Raises:
            ValueError: the shapes of the outputs do not fit.
        """

    def trained_parameters(self) -> list[nn.Parameter]:
        """Return parameters that are trained beside those of the student; by default none.

        Returns:
            Parameters for the optimizer of the student, on the device of the student.
        """
        return []

    def compress(self, max_steps: int | None = None, max_epochs: int | None = None) -> nn.Module:
        """Train the student, with all fused compressors, within the limits; return the student.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit. Without any limit, the training takes
                as long as that of the evaluator does.

        Returns:
            The student.

        Raises:
            RuntimeError: a selected module is not called in a training step or by the teacher.
            ValueError: the outputs of student and teacher do not fit.
        """
        train_together(self.members(), self.evaluator, self.bound_model, max_steps, max_epochs)
        return self.bound_model

    def unwrap_model(self) -> nn.Module:
        """Remove the wrappers of fused compressors, if any; return the student.

        Returns:
            The student.
        """
        if self.shared_wrappers is not None:
            self.shared_wrappers.leave()
        return self.bound_model

    def wrap_model(self) -> nn.Module:
        """Put the wrappers of fused compressors, if any, into the student; return it.

        Returns:
            The student.
        """
        if self.shared_wrappers is not None:
            self.shared_wrappers.enter()
        return self.bound_model

    def join_training(self, evaluator: Evaluator) -> None:
        """Add the distances to the loss, as `patch`.

        Args:
            evaluator: has the student.
        """
        self.patch(evaluator)

    @property
    def distilling_evaluator(self) -> Evaluator:
        """Return an evaluator whose trainings distil, for a pruner or quantizer of the student.

        Returns:
            A new evaluator, which trains by `evaluator`.
        """
        return DistillingEvaluator(self.evaluator, self.patch)

    def patch(self, evaluator: Evaluator) -> None:
        """Add distances to a bound evaluator's loss, and own parameters to its optimizer.

        Args:
            evaluator: has the student.

        Raises:
            RuntimeError: no model is bound.
        """
        self._student.clear()
        student = plain_modules(evaluator.bound_model)
        teacher = plain_modules(self.teacher_model)
        links = {one for targets in self._plan.values() for s in targets.values() for one in s.link}
        evaluator.patch_loss(self._distilled)
        evaluator.register_hooks(
            list(self._student.hooks({name: student[name] for name in self._plan}))
        )
        evaluator.register_hooks(
            list(self._teacher.hooks({name: teacher[name] for name in sorted(links)}))
        )
        parameters = self.trained_parameters()
        if parameters:
            evaluator.patch_optim_param_group({"params": parameters})

    def _distilled(self, loss: Tensor, batch: object) -> Tensor:
        self.run_teacher(lambda: self._teacher_predict(batch, self.teacher_model), loss.device)
        total = self._origin_loss_lambda * loss
        try:
            for name, targets in self._plan.items():
                for target, settings in targets.items():
                    found = self._distance(name, target, settings)
                    total = total + settings.weight * found
        finally:
            self._student.clear()
            self._teacher.clear()
        return total

    def run_teacher(self, predict: Callable[[], object], device: torch.device) -> None:
        """Move the teacher to a device; call a function without gradients, teacher in eval mode.

        Args:
            predict: calls the teacher.
            device: where the batch is.
        """
        self.teacher_model.to(device)
        with torch.no_grad(), eval_mode(self.teacher_model):
            predict()

    def _distance(self, name: str, target: str, settings: DistillationSettings) -> Tensor:
        """Return the mean distance over all calls of a module in one training step."""
        calls = self._called(self._student, name, target, "the training step of the student")
        linked = {
            one: self._called(self._teacher, one, target, "teacher_predict")
            for one in settings.link
        }
        for one, outputs in linked.items():
            if len(outputs) != len(calls):
                raise RuntimeError(
                    f"{name} of the student was called {len(calls)} times in a training step, but "
                    f"{one} of the teacher {len(outputs)} times"
                )
        found = [
            self.output_distance(
                (name, target), settings, student, {one: linked[one][call] for one in linked}
            )
            for call, student in enumerate(calls)
        ]
        return torch.stack(found).mean()

    @staticmethod
    def _called(record: OutputRecord, name: str, target: str, caller: str) -> list[Tensor]:
        outputs = record.of(name, target)
        if not outputs:
            raise RuntimeError(f"{name} was not called in {caller}; exclude it from config_list")
        return outputs


def _check_models(student: object, teacher: object) -> None:
    for name, value in (("model", student), ("teacher_model", teacher)):
        if not isinstance(value, nn.Module):
            raise TypeError(f"{name} must be a torch.nn.Module, got {type(value).__name__}")
    assert isinstance(student, nn.Module)
    assert isinstance(teacher, nn.Module)
    own = {id(one) for one in student.parameters()}
    if student is teacher or any(id(one) in own for one in teacher.parameters()):
        raise ValueError(
            "model and teacher_model must be different models without shared parameters, because "
            "the training changes the student; copy one by copy.deepcopy"
        )


def _infos(model: nn.Module) -> dict[str, ModuleInfo]:
    return {
        name: ModuleInfo(
            type(unwrapped(module)).__name__,
            frozenset(own for own, _ in unwrapped(module).named_parameters(recurse=False)),
        )
        for name, module in plain_modules(model).items()
    }
