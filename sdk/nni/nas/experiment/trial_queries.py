"""Methods of experiments that answer questions about trials, and change limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Protocol

from nni.experiment.records import TrialJob, TrialMetricData, TrialResult


class SearchTrials(Protocol):
    """Interface of the trials of a search: queries, changes of limits, and stopping one."""

    def get_status(self) -> str:
        """Return the state of the experiment."""
        ...

    def list_trial_jobs(self) -> list[TrialJob]:
        """Return all trials in order of creation."""
        ...

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        """Return one trial."""
        ...

    def get_job_statistics(self) -> dict[str, int]:
        """Return the number of trials by the name of their state."""
        ...

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        """Return metrics by trial id, those of one trial if an id is given."""
        ...

    def export_data(self) -> list[TrialResult]:
        """Return parameters and result of the trials that have one."""
        ...

    def update_trial_concurrency(self, value: int) -> None:
        """Set how many trials may run at once."""
        ...

    def update_max_trial_number(self, value: int) -> None:
        """Set the maximum number of trials."""
        ...

    def update_max_experiment_duration(self, value: float | str | timedelta) -> None:
        """Set how long the experiment may run."""
        ...

    def kill_trial_job(self, trial_job_id: str) -> None:
        """Stop a trial."""
        ...


class TrialQueries(ABC):
    """Base class of searches: the methods of `nni.experiment.Experiment` about trials.

    With the engine `ts` the experiment of the trials answers; otherwise, and after `stop`, the
    models of this process do. The id of a trial is then the number of its model, from 0.
    """

    @abstractmethod
    def _trials(self) -> SearchTrials:
        """Return the source of the trials that the queries read."""

    def get_status(self) -> str:
        """Return the state of the experiment.

        Returns:
            `INITIALIZED`, `RUNNING`, `NO_MORE_TRIAL`, `DONE`, `ERROR`, `STOPPING` or `STOPPED`.
        """
        return self._trials().get_status()

    def list_trial_jobs(self) -> list[TrialJob]:
        """Return all trials in order of creation.

        Returns:
            Their states, parameters and results as they are now.
        """
        return self._trials().list_trial_jobs()

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        """Return the state, parameters and results of one trial.

        Args:
            trial_job_id: the trial.

        Returns:
            Its record as it is now.

        Raises:
            nni.experiment.errors.NotFoundError: the experiment has no such trial.
        """
        return self._trials().get_trial_job(trial_job_id)

    def get_job_statistics(self) -> dict[str, int]:
        """Return the number of trials by the name of their state.

        Returns:
            Numbers above 0 only, e.g. `{"RUNNING": 2, "SUCCEEDED": 7}`.
        """
        return self._trials().get_job_statistics()

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        """Return all reported metrics by trial id; of one trial if an id is given.

        Args:
            trial_job_id: the trial; None: all trials.

        Returns:
            Metrics by trial id, in order of arrival; trials without a metric are left out.
        """
        return self._trials().get_job_metrics(trial_job_id)

    def export_data(self) -> list[TrialResult]:
        """Return parameters and final result of the trials that have one.

        Returns:
            One record per trial, in order of creation.
        """
        return self._trials().export_data()

    def update_trial_concurrency(self, value: int) -> None:
        """Set how many models may be evaluated at once; running ones continue.

        Args:
            value: at least 1; only 1 with the sequential engine.

        Raises:
            ValueError: the engine evaluates one after another.
        """
        self._trials().update_trial_concurrency(value)

    def update_max_trial_number(self, value: int) -> None:
        """Set how many models may be evaluated.

        Args:
            value: at least 1.

        Raises:
            RuntimeError: the models are evaluated in this process.
        """
        self._trials().update_max_trial_number(value)

    def update_max_experiment_duration(self, value: float | str | timedelta) -> None:
        """Set how long the experiment may run in all.

        Args:
            value: seconds, a timedelta, or a text such as `2h`.

        Raises:
            RuntimeError: the models are evaluated in this process.
        """
        self._trials().update_max_experiment_duration(value)

    def kill_trial_job(self, trial_job_id: str) -> None:
        """Stop the trial of a model, which fails then.

        Args:
            trial_job_id: the trial.

        Raises:
            RuntimeError: the models are evaluated in this process.
        """
        self._trials().kill_trial_job(trial_job_id)
