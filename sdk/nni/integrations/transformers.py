"""Callback of the Trainer of transformers, and search for its arguments.

Needs the extra `nni[transformers]`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import nni
from nni.integrations._extras import missing_extra
from nni.integrations._training_reports import (
    FinalResult,
    MetricNames,
    StoppableTrial,
    TrainingReports,
)

try:
    from transformers import (
        Trainer,
        TrainerCallback,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )
    from transformers.trainer_utils import BestRun, default_compute_objective, get_last_checkpoint
except ImportError as error:
    raise missing_extra("TransformersCallback", "transformers", "transformers") from error

if TYPE_CHECKING:
    from nni.hpo import TrialReporter

__all__ = ["TransformersCallback", "search_trainer"]

_SUMMARY = "train_runtime"
"""Metric that only the last log of a training has."""


class TransformersCallback(TrainerCallback):
    """Callback of a transformers `Trainer`: reports to a trial, ends training early, checkpoints.

    After each evaluation, or each log of a training without one, it reports metrics, and at the end
    the result. Only the process of rank zero reports and copies checkpoints; all ranks stop
    together.

    Args:
        metric: name of the metric, as in `eval_loss`, or `loss` without evaluations; or a dict of
            key in the report to such a name, for several objectives or further figures.
        trial: trial of `nni.hpo.optimize`, which may stop the training. None: the trial of this
            process, which an experiment stops by ending the process; outside an experiment reports
            are printed.
        final: report that is the result of the trial: `last`, or the one with the `min` or `max`
            of `default`.
        checkpoints: whether checkpoints of the Trainer are those of the trial. Its `output_dir`
            must be `nni.checkpoint_directory()`.

    Raises:
        ValueError: an argument is wrong; in a training, a metric has not been logged.
        TypeError: `metric` is neither a name nor a dict.

    Examples:
        >>> from nni.integrations import TransformersCallback
        >>> callback = TransformersCallback("eval_loss", final="min")
        >>> callback.result is None
        True

        In a trial, with a model and its data:

            callback = TransformersCallback("eval_loss", checkpoints=True)
            arguments = TrainingArguments(
                str(nni.checkpoint_directory()), eval_strategy="epoch", save_strategy="epoch"
            )
            trainer = Trainer(model, arguments, callbacks=[callback], ...)
            trainer.train(resume_from_checkpoint=callback.checkpoint_path)
    """

    def __init__(
        self,
        metric: MetricNames,
        *,
        trial: StoppableTrial | None = None,
        final: FinalResult = "last",
        checkpoints: bool = False,
    ) -> None:
        self._reports = TrainingReports(metric, trial, final)
        self._checkpoints = checkpoints
        self._is_training = False

    @property
    def result(self) -> Any:  # noqa: ANN401 - a number or a dict
        """Result of the training so far, for an objective to return; None before a report."""
        return self._reports.result

    @property
    def checkpoint_path(self) -> str | None:
        """Checkpoint of an earlier attempt of this trial, for `train`; None if there is none."""
        find: Callable[[str], str | None] = get_last_checkpoint
        return find(str(nni.checkpoint_directory()))

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        """Check the output folder; restore the result so far from the log of a checkpoint.

        Args:
            args: of the training.
            state: of the training.
            control: of the training.
            kwargs: not used.

        Raises:
            ValueError: checkpoints are asked for, and `output_dir` is another folder.
        """
        del control, kwargs
        folder = Path(args.output_dir or "").absolute()
        if self._checkpoints and folder != nni.checkpoint_directory():
            raise ValueError(
                "output_dir must be nni.checkpoint_directory() with checkpoints=True, got "
                f"{args.output_dir!r}"
            )
        self._is_training = True
        for values in state.log_history:
            self._reports.take_up(values)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, float] | None = None,
        **kwargs: object,
    ) -> None:
        """Report the metrics of an evaluation within `train`; stop all ranks if due.

        Args:
            args: of the training.
            state: of the training.
            control: of the training, which this may stop.
            metrics: of the evaluation.
            kwargs: not used.
        """
        del args, kwargs
        if self._is_training:
            self._report(state, control, metrics or {})

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: object,
    ) -> None:
        """Report the metrics of a log, in a training without evaluations; stop if due.

        Args:
            args: of the training.
            state: of the training.
            control: of the training, which this may stop.
            logs: metrics that are logged.
            kwargs: not used.
        """
        del kwargs
        values = logs or {}
        if self._is_training and args.eval_strategy == "no" and _SUMMARY not in values:
            self._report(state, control, values)

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        """Save the Trainer's checkpoint as that of the trial, if enabled; on rank zero only.

        Args:
            args: of the training.
            state: of the training.
            control: of the training.
            kwargs: not used.
        """
        del args, control, kwargs
        if self._checkpoints and state.is_world_process_zero:
            nni.save_checkpoint(step=state.global_step)

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        """Report the result, on rank zero only.

        Args:
            args: of the training.
            state: of the training.
            control: of the training.
            kwargs: not used.
        """
        del args, control, kwargs
        self._is_training = False
        if state.is_world_process_zero:
            self._reports.finish()

    def _report(
        self, state: TrainerState, control: TrainerControl, values: Mapping[str, float]
    ) -> None:
        stop = state.is_world_process_zero and self._reports.step(values)
        # One rank decides; a rank that went on alone would wait for the others for ever.
        if _first_of_ranks(stop):
            control.should_training_stop = True


def search_trainer(
    trainer: Trainer,
    search_space: Any,  # noqa: ANN401 - any form of a search space
    *,
    n_trials: int = 20,
    direction: Literal["minimize", "maximize"] = "minimize",
    compute_objective: Callable[[dict[str, float]], float] = default_compute_objective,
    seed: int | None = None,
    **options: Any,  # noqa: ANN401 - arguments of many types
) -> BestRun:
    """Optimize arguments of a Trainer over trials; return the best run.

    That method has a closed list of backends. Each trial trains a new model of `model_init`; a
    parameter named as a field of `TrainingArguments` is set there, and all of them are the argument
    of a `model_init` that takes one. Each evaluation is an intermediate result, so that an assessor
    can stop a trial. At the end the arguments are as they were, and the Trainer has the model of
    the last trial.

    Args:
        trainer: made with `model_init`, in one process.
        search_space: see `nni.hpo.optimize`.
        n_trials: number of trials.
        direction: `minimize` or `maximize`.
        compute_objective: returns the objective of the metrics of an evaluation; by default the sum
            of the metrics that `compute_metrics` adds, or else the loss.
        seed: of the tuner.
        options: further arguments of `nni.hpo.optimize`, such as `tuner`, `assessor`, `timeout`.

    Returns:
        Id of the best trial, its objective and parameters; `run_summary` is the whole
        `nni.hpo.OptimizeResult`. Checkpoints of trial n are in `run-<n>` below `output_dir`.

    Raises:
        ValueError: the Trainer has no `model_init`, or runs in several processes; a parameter is
            neither an argument nor taken by `model_init`.

    Examples:
        With a `Trainer` that has `model_init`:

            best = search_trainer(trainer, {"learning_rate": LogUniform(1e-5, 1e-2)}, n_trials=10)
            print(best.hyperparameters)

        A Trainer of a ready model has nothing to start each trial from:

        >>> from types import SimpleNamespace
        >>> from nni.integrations import search_trainer
        >>> search_trainer(SimpleNamespace(model_init=None), {})
        Traceback (most recent call last):
        ValueError: trainer must have model_init, got one with a model; pass model_init=...
    """
    from nni.hpo import optimize  # not a callback's business

    if getattr(trainer, "model_init", None) is None:
        raise ValueError("trainer must have model_init, got one with a model; pass model_init=...")
    if trainer.args.world_size > 1:
        raise ValueError(
            "trainer must run in one process, got "
            f"{trainer.args.world_size}; search by an experiment, with TransformersCallback"
        )

    def objective(parameters: Any, trial: "TrialReporter") -> float:  # noqa: ANN401 - of the space
        with _arguments(trainer, parameters, trial.id):
            return _train(trainer, trial, compute_objective)

    found = optimize(
        objective, search_space, trials=n_trials, optimize_mode=direction, seed=seed, **options
    )
    best = next(one for one in found.trials if one.value == found.best_value)
    return BestRun(str(best.id), found.best_value, dict(best.parameters), found)


class _ObjectiveCallback(TrainerCallback):
    """Callback that reports each evaluation's objective to a trial of `optimize`; stops if due."""

    def __init__(
        self, trial: StoppableTrial, compute_objective: Callable[[dict[str, float]], float]
    ) -> None:
        self._trial = trial
        self._compute_objective = compute_objective
        self.value: float | None = None

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, float] | None = None,
        **kwargs: object,
    ) -> None:
        del args, state, kwargs
        self.value = float(self._compute_objective(dict(metrics or {})))
        self._trial.report(self.value)
        if self._trial.should_stop():
            control.should_training_stop = True


def _train(
    trainer: Trainer,
    trial: StoppableTrial,
    compute_objective: Callable[[dict[str, float]], float],
) -> float:
    callback = _ObjectiveCallback(trial, compute_objective)
    trainer.add_callback(callback)
    try:
        trainer.train()
        if callback.value is None:
            trainer.evaluate()
    finally:
        trainer.remove_callback(callback)
    assert callback.value is not None
    return callback.value


@contextmanager
def _arguments(trainer: Trainer, parameters: dict[str, Any], number: int) -> Iterator[None]:
    """Set arguments, folder and model of a trial for a `with` block; restore them after it."""
    arguments: Any = trainer.args
    changed = {name: value for name, value in parameters.items() if hasattr(arguments, name)}
    others = sorted(parameters.keys() - changed.keys())
    new_model: Any = trainer.model_init
    takes_parameters = bool(signature(new_model).parameters)
    if others and not takes_parameters:
        raise ValueError(
            "search_space must name fields of TrainingArguments, or model_init must take the "
            f"parameters, got {', '.join(others)}"
        )
    before = {name: getattr(arguments, name) for name in ("output_dir", *changed)}
    try:
        for name, value in changed.items():
            old = before[name]
            setattr(arguments, name, value if old is None else type(old)(value))
        arguments.output_dir = str(Path(before["output_dir"], f"run-{number}"))
        if takes_parameters:
            # As an argument of `train` the parameters would have to be a trial of another library.
            trainer.model_init = lambda: new_model(parameters)
        _apply(trainer)
        yield
    finally:
        trainer.model_init = new_model
        for name, value in before.items():
            setattr(arguments, name, value)


def _apply(trainer: Any) -> None:  # noqa: ANN401 - the stubs lack what is set here
    """Rebuild a Trainer's accelerator from changed arguments; drop its last model and optimizer."""
    trainer._train_batch_size = trainer.args.train_batch_size  # noqa: SLF001 - as its own search
    trainer.accelerator.free_memory()
    trainer.create_accelerator_and_postprocess()
    trainer.model = trainer.model_wrapped = None
    trainer.optimizer = trainer.lr_scheduler = None


def _first_of_ranks(value: bool) -> bool:  # noqa: FBT001 - of one rank
    """Return the value of rank zero on all ranks."""
    import torch  # after transformers, which may be missing

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return value
    values = [value]
    torch.distributed.broadcast_object_list(values, src=0)
    return values[0]
