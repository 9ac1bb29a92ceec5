"""Calls of training services that fail, or break their contract."""

from pathlib import Path
from typing import Any

import pytest

from nni_wire.training_services import (
    JobApplicationForm,
    JobRefusedError,
    TrainingService,
    TrialJobDetail,
    TrialJobMetric,
    TrialJobStatus,
)
from svc_trial_runner.fleet.adapters.training_services.service_calls import (
    ServiceCalls,
    TrainingServiceError,
    agent_of,
)
from svc_trial_runner.fleet.testing import agent_name

FORM = JobApplicationForm(1, "true", "/nowhere", ("a tag", str(agent_name(1))))


class ScriptedService(TrainingService):
    """Service whose operations return, or raise, what its section has under their names."""

    async def list_trial_jobs(self) -> Any:
        return self._answer("list")

    async def submit_trial_job(self, form: JobApplicationForm) -> Any:
        return self._answer("submit")

    async def cancel_trial_job(self, trial_job_id: str, is_early_stopped: bool = False) -> None:
        self._answer("cancel")

    async def run(self) -> None:
        self._answer("run")

    def _answer(self, operation: str) -> Any:
        answer = self.section[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer


def calls(**answers: object) -> ServiceCalls:
    return ServiceCalls.create(ScriptedService, answers, Path("unused"))


def job(**fields: Any) -> TrialJobDetail:
    return TrialJobDetail(**{"id": "7", "status": TrialJobStatus.RUNNING, **fields})


async def test_jobs_of_the_service_are_returned() -> None:
    assert await calls(list=(job(),)).jobs() == [job()]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "result of list_trial_jobs must be a list of TrialJobDetail, got None"),
        ([{"id": "7"}], "result of list_trial_jobs must be a TrialJobDetail, got {'id': '7'}"),
        ([job(id="")], "list_trial_jobs: id must be a text that is not empty, got ''"),
        ([job(status="RUNNING")], "list_trial_jobs: status must be a TrialJobStatus"),
        ([job(tags="tag")], "list_trial_jobs: tags must be a tuple of texts, got 'tag'"),
    ],
)
async def test_wrong_result_is_a_permanent_error_with_operation_rule_and_value(
    result: object, message: str
) -> None:
    with pytest.raises(TrainingServiceError) as caught:
        await calls(list=result).jobs()

    assert message in str(caught.value)
    assert caught.value.permanent


async def test_error_of_the_service_is_one_of_the_platform_with_its_words() -> None:
    with pytest.raises(TrainingServiceError, match="cancel_trial_job: the queue is away") as caught:
        await calls(cancel=OSError("the queue is away")).cancel("7")

    assert not caught.value.permanent


async def test_refused_job_is_a_permanent_error_with_a_remedy() -> None:
    with pytest.raises(TrainingServiceError, match=r"^no quota$") as caught:
        await calls(submit=JobRefusedError("no quota", "ask for more")).submit(FORM)

    assert (caught.value.remedy, caught.value.permanent) == ("ask for more", True)


async def test_error_without_words_has_the_name_of_its_type() -> None:
    with pytest.raises(TrainingServiceError, match="run: ZeroDivisionError"):
        await calls(run=ZeroDivisionError()).run()


async def test_operation_that_is_no_coroutine_is_a_permanent_error() -> None:
    class Blocking(ScriptedService):
        def clean_up(self) -> None:  # type: ignore[override] # that is the fault
            return

    with pytest.raises(TrainingServiceError, match="clean_up must be awaitable") as caught:
        await ServiceCalls.create(Blocking, {}, Path("unused")).clean_up()

    assert caught.value.permanent


def test_object_that_is_no_training_service_is_refused() -> None:
    with pytest.raises(TrainingServiceError, match="must be a subclass of TrainingService"):
        ServiceCalls.create(Path, {}, Path("unused"))


def test_section_that_the_class_refuses_is_a_permanent_error() -> None:
    class Strict(ScriptedService):
        def __init__(self, section: Any, folder: Path) -> None:
            raise ValueError("queue must be given")

    with pytest.raises(TrainingServiceError, match="Strict: queue must be given") as caught:
        ServiceCalls.create(Strict, {}, Path("unused"))

    assert caught.value.permanent


async def test_metadata_and_listeners_reach_the_service() -> None:
    service = ScriptedService({}, Path("unused"))
    metrics: list[TrialJobMetric] = []

    await ServiceCalls(service).set_metadata("trial_config", "{}")
    ServiceCalls(service).listen(metrics.append)
    service.send_metric(TrialJobMetric("7", "1.0"))

    assert await service.get_cluster_metadata("trial_config") == "{}"
    assert metrics == [TrialJobMetric("7", "1.0")]


@pytest.mark.parametrize(
    "fields", [{"tags": FORM.tags}, {"form": FORM}, {"tags": ["x", str(agent_name(1))]}]
)
def test_agent_of_a_job_is_found_by_the_tags(fields: dict[str, Any]) -> None:
    assert agent_of(job(**fields)) == agent_name(1)


@pytest.mark.parametrize("fields", [{}, {"tags": ("mine",), "form": FORM}, {"tags": (7,)}])
def test_job_of_another_is_that_of_no_agent(fields: dict[str, Any]) -> None:
    assert agent_of(job(**fields)) is None


async def test_jobs_without_a_form_or_tags_are_jobs() -> None:
    assert await calls(list=[]).jobs() == []
    with pytest.raises(TrainingServiceError, match="id must be a text"):
        await calls(list=[job(id=7)]).jobs()


async def test_words_of_a_service_are_shortened_to_400_characters() -> None:
    with pytest.raises(TrainingServiceError) as caught:
        await calls(submit=JobRefusedError("a" * 500)).submit(FORM)

    assert str(caught.value) == "a" * 400


@pytest.mark.parametrize(("error", "permanent"), [(TypeError, True), (OSError, False)])
def test_only_a_refused_section_is_a_permanent_error(
    error: type[Exception], *, permanent: bool
) -> None:
    class Refusing(ScriptedService):
        def __init__(self, section: Any, folder: Path) -> None:
            raise error("no")

    with pytest.raises(TrainingServiceError, match="Refusing: no") as caught:
        ServiceCalls.create(Refusing, {}, Path("unused"))

    assert caught.value.permanent is permanent


async def test_calls_reach_the_service_with_their_arguments() -> None:
    found: list[object] = []

    class Noting(ScriptedService):
        async def submit_trial_job(self, form: JobApplicationForm) -> Any:
            found.append(form)
            return job(id="8")

        async def cancel_trial_job(self, trial_job_id: str, is_early_stopped: bool = False) -> None:
            found.append((trial_job_id, is_early_stopped))

        async def clean_up(self) -> None:
            found.append("clean_up")

        async def run(self) -> None:
            found.append("run")

    service = ServiceCalls.create(Noting, {}, Path("unused"))

    assert await service.submit(FORM) == job(id="8")
    await service.cancel("9")
    await service.clean_up()
    await service.run()

    assert found == [FORM, ("9", False), "clean_up", "run"]


def test_listener_that_the_service_refuses_is_an_error() -> None:
    class Deaf(ScriptedService):
        def add_trial_job_metric_listener(self, listener: object) -> None:
            raise RuntimeError("no metrics")

    with pytest.raises(
        TrainingServiceError, match="add_trial_job_metric_listener: no metrics"
    ) as caught:
        ServiceCalls.create(Deaf, {}, Path("unused")).listen(lambda _: None)

    assert not caught.value.permanent


async def test_wrong_result_is_shown_by_its_first_80_characters() -> None:
    with pytest.raises(TrainingServiceError) as caught:
        await calls(list="a" * 200).jobs()

    assert str(caught.value).endswith(f"got '{'a' * 79}")
    assert caught.value.remedy == "repair the class of the training service"


def test_class_and_section_reach_the_service() -> None:
    made: list[tuple[Any, Path]] = []

    class Noting(ScriptedService):
        def __init__(self, section: Any, folder: Path) -> None:
            made.append((section, folder))
            super().__init__(section, folder)

    ServiceCalls.create(Noting, {"queue": "a"}, Path("folder"))

    assert made == [({"queue": "a"}, Path("folder"))]


def test_object_in_place_of_a_class_has_a_remedy() -> None:
    with pytest.raises(TrainingServiceError) as caught:
        ServiceCalls.create("a" * 200, {}, Path("unused"))

    assert str(caught.value).endswith(f"got '{'a' * 79}")
    assert caught.value.remedy == "repair the PlatformEntry of its package"
    assert caught.value.permanent


def test_own_tags_of_a_job_win_over_those_of_its_form() -> None:
    assert agent_of(job(tags=(str(agent_name(2)),), form=FORM)) == agent_name(2)
    assert agent_of(job(tags=(), form=FORM)) == agent_name(1)
