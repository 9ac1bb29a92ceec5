"""Adapter over a training service in memory; the conformance suite runs one with processes."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
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
from svc_trial_runner.agent_settings import parse_agent_settings
from svc_trial_runner.fleet.adapters.training_services.adapter import (
    TrainingServiceAdapter,
    platform_agent,
)
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.local_platforms import ENDPOINTS, OpenFront

NAME = agent_name(1)
ORDER = agent_order(NAME)


class Cluster:
    """Platform of the tests: its jobs, and the faults of its next calls."""

    def __init__(self) -> None:
        self.jobs: dict[str, TrialJobDetail] = {}
        self.faults: dict[str, Exception] = {}
        self.metadata: list[dict[str, str]] = []
        self.services: list[ClusterService] = []
        self.cleaned = 0
        self.cancels = True
        self.drops_tags = False

    def end(self, status: TrialJobStatus, message: str = "") -> None:
        """End all jobs."""
        self.jobs = {
            key: replace(job, status=status, message=message) for key, job in self.jobs.items()
        }

    def fail(self, operation: str) -> None:
        """Raise the fault of an operation, once."""
        fault = self.faults.pop(operation, None)
        if fault is not None:
            raise fault


class ClusterService(TrainingService):
    """Training service of a `Cluster`."""

    def __init__(self, cluster: Cluster, section: Any, folder: Path) -> None:
        super().__init__(section, folder)
        self.cluster = cluster
        self.loop_failed = asyncio.Event()
        cluster.services.append(self)

    async def list_trial_jobs(self) -> list[TrialJobDetail]:
        self.cluster.fail("list")
        return list(self.cluster.jobs.values())

    async def submit_trial_job(self, form: JobApplicationForm) -> TrialJobDetail:
        self.cluster.fail("submit")
        tags = () if self.cluster.drops_tags else form.tags
        job = TrialJobDetail(f"job-{form.sequence_id}", TrialJobStatus.WAITING, form, tags=tags)
        if self.cluster.drops_tags:
            job = replace(job, form=None)
        self.cluster.jobs[job.id] = job
        return job

    async def cancel_trial_job(self, trial_job_id: str, is_early_stopped: bool = False) -> None:
        if self.cluster.cancels:
            job = self.cluster.jobs[trial_job_id]
            self.cluster.jobs[job.id] = replace(job, status=TrialJobStatus.USER_CANCELED)
        self.cluster.fail("cancel")

    async def set_cluster_metadata(self, key: str, value: str) -> None:
        self.cluster.metadata.append({key: value})

    async def run(self) -> None:
        await self.loop_failed.wait()
        raise OSError("the queue has hung up")

    async def clean_up(self) -> None:
        self.cluster.cleaned += 1


class OneBundle:
    """Store of bundles with one file, which remembers for which Python it was asked."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "nni-agent-0123.tar.gz"
        self._path.write_bytes(b"packed")
        self.asked: list[tuple[tuple[int, int], str]] = []

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        self.asked.append((python, platform_tag))
        return self._path


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def bundles(tmp_path: Path) -> OneBundle:
    return OneBundle(tmp_path)


def context(tmp_path: Path, bundles: OneBundle, **options: object) -> AdapterContext:
    section = PlatformSection("cluster", {"pollIntervalSeconds": 0.05, **options})
    return AdapterContext(INSTALLATION, POOL, section, ENDPOINTS, bundles, tmp_path, OpenFront())


@pytest.fixture
async def adapter(
    tmp_path: Path, bundles: OneBundle, cluster: Cluster
) -> AsyncIterator[TrainingServiceAdapter]:
    made = adapter_of(cluster, context(tmp_path, bundles, pythonVersion="3.12", slots=2))
    yield made
    await made.aclose()


def adapter_of(cluster: Cluster, context: AdapterContext) -> TrainingServiceAdapter:
    bound = type("Bound", (ClusterService,), {"__init__": _init_of(cluster)})
    return TrainingServiceAdapter(bound, context, end_limit_s=0.1)


def _init_of(cluster: Cluster) -> Any:
    def init(self: ClusterService, section: Any, folder: Path) -> None:
        ClusterService.__init__(self, cluster, section, folder)

    return init


async def test_job_has_the_agents_name_settings_and_command(
    adapter: TrainingServiceAdapter, cluster: Cluster, bundles: OneBundle, tmp_path: Path
) -> None:
    order = replace(ORDER, slots=2, gpus_per_trial=1)

    assert await adapter.launch([order]) == []

    form = cluster.jobs["job-1"].form
    assert form is not None
    folder = tmp_path / "jobs" / str(NAME)
    assert (form.sequence_id, form.tags) == (1, (str(NAME),))
    assert (form.command, form.code_directory) == ("sh start.sh", str(folder))
    assert form.placement_constraint == {"type": "GPUNumber", "gpus": [2]}
    settings = parse_agent_settings((folder / "settings.json").read_bytes())
    assert (settings.name, settings.platform, settings.slots) == (str(NAME), "cluster", 2)
    assert settings.connection.manager == "192.0.2.1:8081"
    assert [python for python, _ in bundles.asked] == [(3, 12)]


async def test_common_values_are_set_once(
    adapter: TrainingServiceAdapter, cluster: Cluster, tmp_path: Path
) -> None:
    for number in (1, 2):
        await adapter.launch([agent_order(agent_name(number))])

    (metadata,) = cluster.metadata
    assert json.loads(metadata["trial_config"]) == {
        "command": "sh start.sh",
        "codeDir": str(tmp_path / "jobs"),
    }


async def test_job_whose_answer_was_lost_is_not_submitted_again(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    cluster.faults["submit"] = AssertionError("submitted again")

    assert await adapter.launch([ORDER]) == []


async def test_failure_of_a_submission_is_an_error_with_its_words(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    cluster.faults["submit"] = TimeoutError("no answer in 10 s")

    with pytest.raises(PlatformError, match="submit_trial_job: no answer in 10 s"):
        await adapter.launch([ORDER])


async def test_refused_job_is_a_failed_launch_without_files(
    adapter: TrainingServiceAdapter, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.faults["submit"] = JobRefusedError("no quota", "ask for more")

    (failure,) = await adapter.launch([ORDER])

    assert (failure.reason, failure.remedy, failure.permanent) == ("no quota", "ask for more", True)
    assert list((tmp_path / "jobs").iterdir()) == []


async def test_service_that_drops_the_tags_is_refused_and_its_job_cancelled(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    cluster.drops_tags = True

    (failure,) = await adapter.launch([ORDER])

    assert "submit_trial_job must have the tags of the form, got ()" in failure.reason
    assert cluster.jobs["job-1"].status is TrialJobStatus.USER_CANCELED


@pytest.mark.parametrize(
    ("status", "phase", "reason"),
    [
        ("WAITING", AgentPhase.PENDING, "the job 7 is WAITING"),
        ("RUNNING", AgentPhase.RUNNING, ""),
        ("UNKNOWN", AgentPhase.RUNNING, "the job 7 is UNKNOWN"),
        ("SUCCEEDED", AgentPhase.ENDED, ""),
        ("FAILED", AgentPhase.ENDED, "the job 7 is FAILED"),
        ("SYS_CANCELED", AgentPhase.ENDED, "the job 7 is SYS_CANCELED"),
        ("EARLY_STOPPED", AgentPhase.ENDED, "the job 7 is EARLY_STOPPED"),
    ],
)
def test_state_of_a_job_is_a_phase_with_a_reason(
    status: str, phase: AgentPhase, reason: str
) -> None:
    agent = platform_agent(NAME, TrialJobDetail("7", TrialJobStatus(status)))

    assert (agent.phase, agent.reason) == (phase, reason)


def test_message_of_a_job_is_the_reason() -> None:
    job = TrialJobDetail("7", TrialJobStatus.WAITING, message="no GPU\n is free")

    assert platform_agent(NAME, job).reason == "no GPU is free"


async def test_ended_agent_is_listed_until_it_is_terminated(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    cluster.end(TrialJobStatus.FAILED, "out of memory")

    (agent,) = await adapter.agents()
    await adapter.terminate([NAME])

    assert (agent.phase, agent.reason) == (AgentPhase.ENDED, "out of memory")
    assert await adapter.agents() == []  # the service lists the job for ever


async def test_job_that_does_not_end_is_an_error_and_its_agent_stays(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    cluster.cancels = False

    with pytest.raises(PlatformError, match=r"job-1 is WAITING 0\.1 s after cancel_trial_job"):
        await adapter.terminate([NAME])

    assert [agent.name for agent in await adapter.agents()] == [NAME]


async def test_job_that_ends_while_it_is_cancelled_is_no_error(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    cluster.faults["cancel"] = ValueError("the job has ended")

    await adapter.terminate([NAME])

    assert await adapter.agents() == []


async def test_clean_cancels_all_jobs_and_lets_the_service_clean_up(
    adapter: TrainingServiceAdapter, cluster: Cluster, tmp_path: Path
) -> None:
    await adapter.launch([ORDER, agent_order(agent_name(2))])

    await adapter.clean()

    assert {job.status for job in cluster.jobs.values()} == {TrialJobStatus.USER_CANCELED}
    assert cluster.cleaned == 1
    assert not (tmp_path / "jobs").exists()


async def test_failure_of_the_main_loop_is_an_error_and_the_service_is_opened_again(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.prepare()
    changed = asyncio.create_task(adapter.wait_changed())
    cluster.services[0].loop_failed.set()
    await changed

    with pytest.raises(PlatformError, match="main loop has ended: run: the queue has hung up"):
        await adapter.agents()

    assert await adapter.agents() == []
    assert len(cluster.services) == 2


async def test_check_reports_the_section_before_the_service(
    tmp_path: Path, bundles: OneBundle, cluster: Cluster
) -> None:
    adapter = adapter_of(cluster, context(tmp_path, bundles, pythonVersion="2.7"))

    (problem,) = await adapter.check()

    assert problem.field == "pythonVersion"
    assert cluster.services == []


async def test_check_reports_that_the_service_cannot_list_its_jobs(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    cluster.faults["list"] = PermissionError("login refused")

    (problem,) = await adapter.check()

    assert (problem.field, problem.rule) == ("platform", "list_trial_jobs: login refused")
    assert not problem.permanent


async def test_metrics_of_the_service_change_nothing(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.prepare()

    for value in ("1", "2"):
        cluster.services[0].send_metric(TrialJobMetric("job-1", value))

    assert await adapter.agents() == []


async def test_section_and_folder_are_those_of_the_service(
    tmp_path: Path, bundles: OneBundle, cluster: Cluster
) -> None:
    full = context(tmp_path, bundles, queue="long")
    full = replace(full, section=replace(full.section, secrets={"password": "hidden"}))
    adapter = adapter_of(cluster, full)

    await adapter.prepare()
    await adapter.aclose()

    (service,) = cluster.services
    assert (service.section["queue"], service.section["password"]) == ("long", "hidden")
    assert service.folder == tmp_path


async def test_usable_section_has_no_problem(adapter: TrainingServiceAdapter) -> None:
    assert await adapter.check() == []


async def test_section_that_breaks_a_rule_is_not_prepared(
    tmp_path: Path, bundles: OneBundle, cluster: Cluster
) -> None:
    adapter = adapter_of(cluster, context(tmp_path, bundles, pythonVersion="2.7"))

    with pytest.raises(PlatformError, match="pythonVersion must be"):
        await adapter.prepare()

    assert cluster.services == []


async def test_launch_of_no_order_does_not_open_the_service(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    assert await adapter.launch([]) == []
    assert cluster.services == []


@pytest.mark.parametrize("call", ["launch", "terminate"])
async def test_wait_ends_when_agents_are_launched_or_ended(
    tmp_path: Path, bundles: OneBundle, cluster: Cluster, call: str
) -> None:
    adapter = adapter_of(cluster, context(tmp_path, bundles, pollIntervalSeconds=3600))
    if call == "terminate":
        await adapter.launch([ORDER])
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    assert not waiting.done()

    if call == "launch":
        await adapter.launch([ORDER])
    else:
        await adapter.terminate([NAME])

    async with asyncio.timeout(30):
        await waiting
    assert len(await adapter.agents()) == (call == "launch")
    await adapter.aclose()


async def test_live_job_is_left_over_until_it_ends(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])

    (left,) = await adapter.leftovers()
    cluster.end(TrialJobStatus.SUCCEEDED)

    assert (left.pool, left.agents) == (POOL, (str(NAME),))
    assert await adapter.leftovers() == []


async def test_agent_of_another_pool_is_not_ended(
    adapter: TrainingServiceAdapter, cluster: Cluster, tmp_path: Path, bundles: OneBundle
) -> None:
    await adapter.launch([ORDER])
    other = adapter_of(cluster, replace(context(tmp_path, bundles), pool=f"{POOL}-b"))

    await other.terminate([NAME])

    assert await other.agents() == []
    assert cluster.jobs["job-1"].status is TrialJobStatus.WAITING
    assert (tmp_path / "jobs" / str(NAME)).is_dir()
    await other.aclose()


async def test_live_job_whose_cancellation_fails_is_an_error(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    cluster.cancels = False
    cluster.faults["cancel"] = OSError("no right")

    with pytest.raises(PlatformError, match="cancel_trial_job: no right"):
        await adapter.terminate([NAME])

    assert [agent.name for agent in await adapter.agents()] == [NAME]


async def test_job_that_ends_within_the_limit_is_waited_for(
    tmp_path: Path, bundles: OneBundle, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of(cluster, context(tmp_path, bundles))
    monkeypatch.setattr(adapter, "_end_limit_s", 60.0)
    await adapter.launch([ORDER])
    cluster.cancels = False
    listings = iter([False, False, True])

    def end_at_the_third_listing(operation: str) -> None:
        if operation == "list" and next(listings):
            cluster.end(TrialJobStatus.USER_CANCELED)

    monkeypatch.setattr(cluster, "fail", end_at_the_third_listing)
    await adapter.terminate([NAME])

    assert next(listings, None) is None
    await adapter.aclose()


async def test_service_that_was_cleaned_up_gets_the_common_values_again(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    await adapter.clean()

    await adapter.launch([agent_order(agent_name(2))])

    assert len(cluster.metadata) == 2
    assert len(cluster.services) == 2


async def test_live_job_of_an_agent_counts_before_an_ended_one(
    adapter: TrainingServiceAdapter, cluster: Cluster
) -> None:
    await adapter.launch([ORDER])
    (live,) = cluster.jobs.values()
    ended = replace(live, id="job-0", status=TrialJobStatus.FAILED)

    for jobs in ((ended, live), (live, ended)):
        cluster.jobs = {job.id: job for job in jobs}
        (agent,) = await adapter.agents()
        assert agent.phase is AgentPhase.PENDING


@pytest.mark.parametrize(
    ("reuses", "gpus", "constraint"),
    [
        (True, None, None),
        (True, 0, None),
        (True, 1, {"type": "GPUNumber", "gpus": [2]}),
        (False, 1, {"type": "GPUNumber", "gpus": [1]}),
    ],
)
async def test_job_asks_for_the_gpus_of_its_trials(
    tmp_path: Path,
    bundles: OneBundle,
    cluster: Cluster,
    *,
    reuses: bool,
    gpus: int | None,
    constraint: dict[str, object] | None,
) -> None:
    adapter = adapter_of(cluster, context(tmp_path, bundles, reuseMode=reuses))

    await adapter.launch([replace(ORDER, slots=2, gpus_per_trial=gpus)])

    form = cluster.jobs["job-1"].form
    assert form is not None
    assert form.placement_constraint == constraint
    await adapter.aclose()
