from datetime import timedelta

from nni.experiment.records import TrialJob, TrialMetricData, TrialResult
from nni.nas.experiment.trial_queries import SearchTrials, TrialQueries

JOB = TrialJob("0", "SUCCEEDED", [], "", None, None, [], "", 0)
RESULT = TrialResult({"a": 1}, 0.5, "0")


class RecordedTrials:
    """Trials that record the changes of their limits."""

    def __init__(self) -> None:
        self.changes: list[object] = []

    def get_status(self) -> str:
        return "RUNNING"

    def list_trial_jobs(self) -> list[TrialJob]:
        return [JOB]

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        assert trial_job_id == "0"
        return JOB

    def get_job_statistics(self) -> dict[str, int]:
        return {"SUCCEEDED": 1}

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        return {} if trial_job_id is None else {trial_job_id: []}

    def export_data(self) -> list[TrialResult]:
        return [RESULT]

    def update_trial_concurrency(self, value: int) -> None:
        self.changes.append(value)

    def update_max_trial_number(self, value: int) -> None:
        self.changes.append(value)

    def update_max_experiment_duration(self, value: float | str | timedelta) -> None:
        self.changes.append(value)

    def kill_trial_job(self, trial_job_id: str) -> None:
        self.changes.append(trial_job_id)


class Search(TrialQueries):
    """Search of recorded trials."""

    def __init__(self) -> None:
        self.trials = RecordedTrials()

    def _trials(self) -> SearchTrials:
        return self.trials


def test_questions_go_to_the_trials_of_the_search() -> None:
    search = Search()

    assert search.get_status() == "RUNNING"
    assert search.list_trial_jobs() == [JOB]
    assert search.get_trial_job("0") is JOB
    assert search.get_job_statistics() == {"SUCCEEDED": 1}
    assert search.get_job_metrics() == {}
    assert search.get_job_metrics("0") == {"0": []}
    assert search.export_data() == [RESULT]


def test_changes_go_to_the_trials_of_the_search() -> None:
    search = Search()

    search.update_trial_concurrency(2)
    search.update_max_trial_number(9)
    search.update_max_experiment_duration("2h")
    search.kill_trial_job("0")

    assert search.trials.changes == [2, 9, "2h", "0"]
