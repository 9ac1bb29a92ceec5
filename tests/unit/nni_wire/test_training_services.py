from pathlib import Path

import pytest

from nni_wire.training_services import (
    LIVE_STATUSES,
    JobApplicationForm,
    JobNotFoundError,
    TrainingService,
    TrialJobDetail,
    TrialJobMetric,
    TrialJobStatus,
)

FORM = JobApplicationForm(3, "sh start.sh", "/code", ("a tag",))


class ListService(TrainingService):
    """Service with the essential operations, and jobs in a list."""

    async def list_trial_jobs(self) -> list[TrialJobDetail]:
        return [TrialJobDetail("7", TrialJobStatus.RUNNING, FORM)]

    async def submit_trial_job(self, form: JobApplicationForm) -> TrialJobDetail:
        return TrialJobDetail("8", TrialJobStatus.WAITING, form)

    async def cancel_trial_job(self, trial_job_id: str, is_early_stopped: bool = False) -> None:
        return


@pytest.fixture
def service(tmp_path: Path) -> ListService:
    return ListService({"queue": "long"}, tmp_path)


def test_states_are_the_documented_ones() -> None:
    states = "WAITING RUNNING UNKNOWN SUCCEEDED FAILED USER_CANCELED SYS_CANCELED EARLY_STOPPED"
    assert " ".join(TrialJobStatus) == states
    assert {one.value for one in LIVE_STATUSES} == {"WAITING", "RUNNING", "UNKNOWN"}


def test_class_without_an_essential_operation_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="abstract"):
        TrainingService({}, tmp_path)  # type: ignore[abstract] # that is the test


async def test_job_is_found_by_its_id(service: ListService) -> None:
    assert (await service.get_trial_job("7")).id == "7"
    assert (await service.update_trial_job("7", FORM)).form == FORM


async def test_unknown_job_is_an_error_with_its_id(service: ListService) -> None:
    with pytest.raises(JobNotFoundError, match="got '9'"):
        await service.get_trial_job("9")


async def test_metadata_is_remembered(service: ListService) -> None:
    await service.set_cluster_metadata("trial_config", "{}")

    assert await service.get_cluster_metadata("trial_config") == "{}"
    assert await service.get_cluster_metadata("machine_list") == ""


def test_listeners_get_metrics_until_they_are_removed(service: ListService) -> None:
    metrics: list[TrialJobMetric] = []
    listener = metrics.append

    service.add_trial_job_metric_listener(listener)
    service.send_metric(TrialJobMetric("7", "0.5"))
    for _ in range(2):
        service.remove_trial_job_metric_listener(listener)
    service.send_metric(TrialJobMetric("7", "0.6"))

    assert metrics == [TrialJobMetric("7", "0.5")]


async def test_further_operations_have_defaults(service: ListService, tmp_path: Path) -> None:
    await service.run()
    await service.clean_up()

    assert not service.is_multi_phase_job_supported()
    assert (service.section["queue"], service.folder) == ("long", tmp_path)
