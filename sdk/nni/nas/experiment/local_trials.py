"""Models that are evaluated in this process, as the trials of an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from nni.experiment.errors import NotFoundError
from nni.experiment.records import TrialHyperParameters, TrialJob, TrialMetricData, TrialResult
from nni.nas.space import ExecutableModelSpace, ModelStatus
from nni.nas.strategy.base import StrategyStatus

_STATES: Final = {
    ModelStatus.Initialized: "WAITING",
    ModelStatus.Mutating: "WAITING",
    ModelStatus.Frozen: "WAITING",
    ModelStatus.Retrying: "WAITING",
    ModelStatus.Training: "RUNNING",
    ModelStatus.Trained: "SUCCEEDED",
    ModelStatus.Failed: "FAILED",
    ModelStatus.Invalid: "FAILED",
    ModelStatus.Interrupted: "USER_CANCELED",
}
"""State of a trial by the status of its model."""
STATES_BY_STRATEGY: Final = {
    StrategyStatus.Empty: "INITIALIZED",
    StrategyStatus.Initialized: "INITIALIZED",
    StrategyStatus.Running: "RUNNING",
    StrategyStatus.Succeeded: "DONE",
    StrategyStatus.Interrupted: "STOPPED",
    StrategyStatus.Failed: "ERROR",
}
"""State of an experiment in this process, by that of its strategy."""
_PERIODICAL: Final = "PERIODICAL"
_FINAL: Final = "FINAL"


class LocalTrials:
    """`SearchTrials` of models that are evaluated in this process: the id of a trial is its number.

    Models have no times, and no folders of their own.

    Args:
        models: function that returns the models in the order of their submission.
        status: function that returns the state of the experiment.
        directory: folder of the experiment.
    """

    def __init__(
        self,
        models: Callable[[], Sequence[ExecutableModelSpace]],
        status: Callable[[], str],
        directory: str,
    ) -> None:
        self._models = models
        self._status = status
        self._directory = directory

    def get_status(self) -> str:
        """Return the state of the experiment."""
        return self._status()

    def list_trial_jobs(self) -> list[TrialJob]:
        """Return all models as trials, in the order of their submission."""
        return [self._job(number, model) for number, model in enumerate(self._models())]

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        """Return one model as a trial by its id; raise NotFoundError if there is none.

        Raises:
            NotFoundError: there is none of this number.
        """
        for job in self.list_trial_jobs():
            if job.trialJobId == trial_job_id:
                return job
        raise NotFoundError(
            f"trial {trial_job_id!r} does not exist; list_trial_jobs() has the ids of all"
        )

    def get_job_statistics(self) -> dict[str, int]:
        """Return the number of models by the state of their trial."""
        return dict(Counter(_STATES[model.status] for model in self._models()))

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        """Return the metrics by trial id, of one trial if given; omit trials without a metric."""
        found = {
            str(number): _metrics(number, model)
            for number, model in enumerate(self._models())
            if trial_job_id in {None, str(number)}
        }
        return {trial: metrics for trial, metrics in found.items() if metrics}

    def export_data(self) -> list[TrialResult]:
        """Return sample, final result and number of each model that has a result."""
        return [
            TrialResult(_sample(model), model.metrics.final, str(number))
            for number, model in enumerate(self._models())
            if model.metrics.final is not None
        ]

    def update_trial_concurrency(self, value: int) -> None:
        """Raise ValueError unless the number is 1: models are evaluated one after another."""
        if value != 1:
            raise ValueError(f"value must be 1 with the sequential engine, got {value!r}")

    def update_max_trial_number(self, value: int) -> None:
        """Raise RuntimeError: the limit on models is set before the start."""
        raise _unchangeable("max_trial_number", value)

    def update_max_experiment_duration(self, value: float | str | timedelta) -> None:
        """Raise RuntimeError: the limit on time is set before the start."""
        raise _unchangeable("max_experiment_duration", value)

    def kill_trial_job(self, trial_job_id: str) -> None:
        """Raise RuntimeError: the one model that runs occupies the calling thread."""
        raise RuntimeError(
            f"trial {trial_job_id!r} cannot be stopped: the sequential engine evaluates it in this "
            "process; interrupt the process instead"
        )

    def _job(self, number: int, model: ExecutableModelSpace) -> TrialJob:
        parameters = TrialHyperParameters(number, _sample(model), "algorithm")
        finals = [one for one in _metrics(number, model) if one.type == _FINAL]
        return TrialJob(
            trialJobId=str(number),
            status=_STATES[model.status],
            hyperParameters=[parameters],
            logPath=self._directory,
            startTime=None,
            endTime=None,
            finalMetricData=finals,
            stderrPath="",
            sequenceId=number,
        )


def _sample(model: ExecutableModelSpace) -> dict[str, Any]:
    return {str(label): value for label, value in (model.sample or {}).items()}


def _metrics(number: int, model: ExecutableModelSpace) -> list[TrialMetricData]:
    reports = [
        TrialMetricData(0, str(number), str(number), _PERIODICAL, sequence, metric)
        for sequence, metric in enumerate(model.metrics.intermediates)
    ]
    if model.metrics.final is not None:
        final = model.metrics.final
        reports.append(TrialMetricData(0, str(number), str(number), _FINAL, 0, final))
    return reports


def _unchangeable(field: str, value: object) -> RuntimeError:
    return RuntimeError(
        f"{field} of a search in this process cannot be changed to {value!r} while it runs; stop "
        f"it, set config.{field}, and call resume"
    )
