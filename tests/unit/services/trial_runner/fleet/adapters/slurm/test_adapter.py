"""Platform `slurm` over a table of jobs; the folder of agents is real."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.slurm.adapter import (
    SlurmAdapter,
    agent_grace_s,
    look_interval_s,
)
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    PlatformAgent,
    PlatformSection,
)
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    Front,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)
from tests.support.ports import free_port
from tests.support.scripted_slurm import DOWN, ScriptedSlurm, TableJob
from tests.support.sleeping_agents import SleepingAgents

POOL = "exp-a"
INSTALLATION = "0123abcd"


def name(number: int) -> AgentName:
    return AgentName(INSTALLATION, POOL, number)


def orders(*numbers: int) -> list[AgentOrder]:
    credentials = AgentCredentials("bus-user", "bus-password", "manager-token")
    return [AgentOrder(name(number), credentials, slots=2) for number in numbers]


class OpenFront:
    """Front that is open."""

    async def open(self) -> FrontEndpoint:
        return FrontEndpoint("10.0.0.7:8081", "authority")


class Platform:
    """Table of jobs and a folder, for one test."""

    def __init__(self, folder: Path) -> None:
        self.slurm = ScriptedSlurm()
        self.bus = "nats://127.0.0.1:4222"
        self.home = folder / "home of nni"
        self.folder = folder
        self.bundles = SleepingAgents(folder)
        self.front: Front = NoFront()

    def adapter(self, **options: object) -> SlurmAdapter:
        return SlurmAdapter(self.context(**options), self.slurm)

    def context(self, **options: object) -> AdapterContext:
        section = {"home": str(self.home), "pollIntervalSeconds": 0.1, **options}
        return AdapterContext(
            INSTALLATION,
            POOL,
            PlatformSection("slurm", section),
            InstallationEndpoints(self.bus, "127.0.0.1:50051"),
            self.bundles,
            self.folder,
            self.front,
        )

    def settings(self, number: int) -> dict[str, object]:
        path = self.home / "agents" / str(name(number)) / "settings.json"
        found: dict[str, object] = json.loads(path.read_text())
        return found

    def set_state(self, state: str, reason: str = "None", exit_code: str = "0:0") -> None:
        for job in self.slurm.jobs:
            job.state, job.reason, job.exit_code = state, reason, exit_code

    def folders(self) -> list[str]:
        agents = self.home / "agents"
        return sorted(one.name for one in agents.iterdir()) if agents.is_dir() else []


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    return Platform(tmp_path)


async def phases(adapter: SlurmAdapter) -> Sequence[tuple[int, AgentPhase]]:
    return [(agent.name.number, agent.phase) for agent in await adapter.agents()]


async def test_orders_of_one_launch_are_one_array(platform: Platform) -> None:
    adapter = platform.adapter()

    assert await adapter.launch(orders(4, 6)) == []

    assert [(job.id, job.name) for job in platform.slurm.jobs] == [
        ("1_0", f"{name(4)}.array"),
        ("1_2", f"{name(4)}.array"),
    ]
    assert await phases(adapter) == [(4, AgentPhase.PENDING), (6, AgentPhase.PENDING)]


async def test_cluster_without_arrays_gets_one_job_for_each_agent(platform: Platform) -> None:
    platform.slurm.array_size = 0

    await platform.adapter().launch(orders(4, 6))

    assert [job.name for job in platform.slurm.jobs] == [str(name(4)), str(name(6))]


async def test_section_without_arrays_gets_one_job_for_each_agent(platform: Platform) -> None:
    await platform.adapter(arrays=False).launch(orders(4, 5))

    assert [job.name for job in platform.slurm.jobs] == [str(name(4)), str(name(5))]


async def test_secrets_are_in_a_private_file_only(platform: Platform) -> None:
    await platform.adapter().launch(orders(4))

    path = platform.home / "agents" / str(name(4)) / "settings.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert platform.settings(4)["bus_password"] == "bus-password"
    assert "bus-password" not in platform.slurm.scripts[0]


async def test_settings_name_pool_slots_and_addresses(platform: Platform) -> None:
    await platform.adapter(setupLines=["module load cuda"]).launch(orders(4))

    settings = platform.settings(4)
    assert (settings["pool"], settings["platform"], settings["slots"]) == (POOL, "slurm", 2)
    assert settings["setup_lines"] == ["module load cuda"]
    assert settings["connection"] == {
        "kind": "direct",
        "bus": "nats://127.0.0.1:4222",
        "manager": "127.0.0.1:50051",
        "folder": "",
        "authority": "",
    }


async def test_agent_without_reuse_ends_after_one_trial(platform: Platform) -> None:
    await platform.adapter(reuseMode=False).launch(orders(4))

    settings = platform.settings(4)
    assert (settings["slots"], settings["max_trials"]) == (1, 1)


@pytest.mark.parametrize(
    ("options", "lifetime"),
    [
        ({"maxTrialDuration": "10m"}, 3600 - 60 - 600),
        ({"maxTrialDuration": "10m", "timeLimit": "90m"}, 5400 - 60 - 600),
        ({"timeLimit": "90m"}, None),
    ],
)
async def test_agent_ends_before_a_trial_that_would_not_fit(
    platform: Platform, options: dict[str, object], lifetime: float | None
) -> None:
    await platform.adapter(**options).launch(orders(4))

    assert platform.settings(4)["max_lifetime_s"] == lifetime


async def test_job_of_a_killed_fleet_is_found_by_its_name(platform: Platform) -> None:
    await platform.adapter().launch(orders(4))

    assert await platform.adapter().launch(orders(4, 5)) == []

    assert [job.name for job in platform.slurm.jobs] == [str(name(4)), str(name(5))]


async def test_fleet_killed_before_the_job_was_submitted_launches_it_later(
    platform: Platform,
) -> None:
    await platform.adapter().launch(orders(4))
    platform.slurm.jobs.clear()  # its settings lie there, and no job has its name

    assert await platform.adapter().agents() == []
    assert await platform.adapter().launch(orders(4)) == []

    assert [job.name for job in platform.slurm.jobs] == [str(name(4))]


async def test_refused_job_is_a_failure_in_slurms_words_and_leaves_no_folder(
    platform: Platform,
) -> None:
    words = "sbatch: error: Batch job submission failed: Invalid qos specification"
    platform.slurm.failures["sbatch"] = words

    failures = await platform.adapter().launch(orders(4, 5))

    assert [failure.name for failure in failures] == [name(4), name(5)]
    assert words in failures[0].reason
    assert failures[0].permanent
    assert platform.folders() == []


async def test_submission_whose_answer_was_lost_is_not_repeated(platform: Platform) -> None:
    platform.slurm.failures["sbatch"] = "sbatch: error: Socket timed out on send/recv operation"
    platform.slurm.submits_before_failing = True
    adapter = platform.adapter()

    with pytest.raises(PlatformError, match="does not answer"):
        await adapter.launch(orders(4))
    platform.slurm.failures.clear()

    assert await adapter.launch(orders(4)) == []
    assert len(platform.slurm.jobs) == 1
    assert platform.folders() == [str(name(4))]


async def test_pending_agent_shows_the_reason_in_slurms_words(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4))
    platform.set_state("PENDING", "QOSMaxJobsPerUserLimit")

    (agent,) = await adapter.agents()

    assert agent.reason.startswith("QOSMaxJobsPerUserLimit: a limit of the account")


async def test_ended_agent_shows_why(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4))
    platform.set_state("FAILED", "NonZeroExitCode", "127:0")

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.ENDED
    assert agent.reason.startswith("FAILED with exit code 127: a program of the script was not")


async def test_job_that_left_the_queue_is_found_in_the_accounting(platform: Platform) -> None:
    platform.slurm.accounted = []
    adapter = platform.adapter()
    await adapter.launch(orders(4))
    platform.slurm.accounted = [TableJob("1", str(name(4)), "TIMEOUT")]
    platform.slurm.jobs.clear()

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.ENDED
    assert agent.reason == "TIMEOUT: its time limit was reached; raise timeLimit"


async def test_jobs_of_other_pools_are_no_agents(platform: Platform) -> None:
    platform.slurm.jobs += [
        TableJob("7", f"nni-{INSTALLATION}-exp-ab-1"),
        TableJob("8", f"nni-9999abcd-{POOL}-1"),
        TableJob("9", "train.sh"),
    ]
    adapter = platform.adapter()

    await adapter.clean()

    assert await adapter.agents() == []
    assert {job.state for job in platform.slurm.jobs} == {"PENDING"}


async def test_terminated_agents_are_cancelled_and_their_folders_removed(
    platform: Platform,
) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4, 5))

    for _ in range(2):
        await adapter.terminate([name(4)])

    assert [job.state for job in platform.slurm.jobs] == ["CANCELLED", "PENDING"]
    assert await phases(adapter) == [(5, AgentPhase.PENDING)]
    assert platform.folders() == [str(name(5))]


async def test_clean_leaves_nothing(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4, 5))

    await adapter.clean()

    assert {job.state for job in platform.slurm.jobs} == {"CANCELLED"}
    assert not platform.home.exists()


async def test_controller_that_is_down_is_an_error_with_its_words(platform: Platform) -> None:
    platform.slurm.failures["*"] = DOWN

    with pytest.raises(PlatformError, match="Unable to contact slurm controller") as caught:
        await platform.adapter().agents()

    assert not caught.value.permanent
    assert caught.value.remedy


async def test_wait_wakes_when_the_controller_fails_and_when_it_is_back(
    platform: Platform,
) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4))
    await adapter.agents()
    platform.slurm.failures["*"] = DOWN

    await adapter.wait_changed()
    waiting = asyncio.create_task(adapter.wait_changed())
    await platform.slurm.wait_calls(len(platform.slurm.calls) + 2)
    assert not waiting.done()
    platform.slurm.failures.clear()

    await waiting
    assert await phases(adapter) == [(4, AgentPhase.PENDING)]


async def test_wait_wakes_when_a_job_changes(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4))
    await adapter.agents()
    waiting = asyncio.create_task(adapter.wait_changed())
    platform.set_state("PENDING", "Resources")

    await waiting

    assert (await adapter.agents())[0].reason.startswith("Resources")


async def test_queue_is_not_looked_at_without_agents(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.agents()
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    calls = len(platform.slurm.calls)

    await adapter.launch(orders(4))
    await waiting

    assert calls == 1


@pytest.mark.parametrize(
    ("before_limit_s", "kill_wait_s", "grace_s"), [(60, 30, 28.0), (20, 30, 18.0), (60, 1, 2.0)]
)
def test_agent_has_the_shorter_one_of_the_times_to_kill(
    before_limit_s: float, kill_wait_s: float, grace_s: float
) -> None:
    assert agent_grace_s(before_limit_s, kill_wait_s) == grace_s


@pytest.mark.parametrize(
    ("found", "interval_s"),
    [
        ([], None),
        ([AgentPhase.ENDED], None),
        ([AgentPhase.RUNNING, AgentPhase.ENDED], 30.0),
        ([AgentPhase.RUNNING, AgentPhase.PENDING], 5.0),
        ([AgentPhase.STARTING], 5.0),
    ],
)
def test_queue_is_looked_at_more_rarely_when_all_agents_run(
    found: list[AgentPhase], interval_s: float | None
) -> None:
    agents = [PlatformAgent(name(number), phase) for number, phase in enumerate(found)]

    assert look_interval_s(agents, 5.0) == interval_s


async def test_section_that_keeps_the_rules_has_no_problem(platform: Platform) -> None:
    assert await platform.adapter(timeLimit="2h", gres="gpu:2").check() == []
    assert platform.slurm.jobs == []


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"timeLimit": "3h"}, "timeLimit"),
        ({"partition": "nope"}, "partition"),
        ({"nodes": 2}, "nodes"),
        ({"options": ["--nodes=2"]}, "options[0]"),
    ],
)
async def test_check_names_the_field_that_breaks_a_rule(
    platform: Platform, options: dict[str, object], field: str
) -> None:
    assert [one.field for one in await platform.adapter(**options).check()] == [field]


async def test_section_that_breaks_a_rule_is_not_prepared(platform: Platform) -> None:
    with pytest.raises(PlatformError, match="user must be given") as caught:
        await platform.adapter(host="login1").prepare()

    assert caught.value.permanent
    assert not platform.home.exists()


async def test_section_whose_login_breaks_a_rule_runs_no_command_on_this_machine(
    platform: Platform,
) -> None:
    adapter = SlurmAdapter(platform.context(host="login1"))

    for call in (adapter.agents, adapter.clean, adapter.leftovers):
        with pytest.raises(PlatformError, match="user must be given"):
            await call()


async def test_login_node_that_does_not_answer_is_a_problem_of_its_port(
    platform: Platform,
) -> None:
    port = free_port()
    context = platform.context(host="127.0.0.1", port=port, user="ann")
    adapter = SlurmAdapter(context)

    (problem,) = await adapter.check()
    await adapter.aclose()

    assert (problem.field, problem.value) == ("port", str(port))
    assert problem.rule == "is not open: no SSH server listens there"


async def test_check_shows_what_slurm_refuses(platform: Platform) -> None:
    platform.slurm.failures["sbatch"] = "allocation failure: Invalid account or account/partition"

    (problem,) = await platform.adapter(account="lab").check()

    assert (problem.field, problem.value) == ("account", "lab")
    assert "Invalid account" in problem.rule


async def test_nodes_that_are_down_now_are_no_fault_of_the_section(platform: Platform) -> None:
    platform.slurm.failures["sbatch"] = (
        "allocation failure: Requested node configuration is not available"
    )

    assert await platform.adapter().check() == []


async def test_check_with_the_controller_down_is_a_problem(platform: Platform) -> None:
    platform.slurm.failures["*"] = DOWN

    (problem,) = await platform.adapter().check()

    assert "controller does not answer" in problem.rule
    assert problem.remedy


async def test_nodes_elsewhere_without_a_way_to_the_bus_are_refused(platform: Platform) -> None:
    platform.slurm.nodes = platform.slurm.nodes.replace("127.0.0.1", "192.0.2.7")

    (problem,) = await platform.adapter().check()

    assert "(n1) need the TLS front" in problem.rule
    platform.bus = "tls://head:4222"
    assert await platform.adapter().check() == []


async def test_agents_on_nodes_elsewhere_get_the_address_of_the_front(platform: Platform) -> None:
    platform.slurm.nodes = platform.slurm.nodes.replace("127.0.0.1", "192.0.2.7")
    platform.front = OpenFront()

    assert await platform.adapter().check() == []
    await platform.adapter().launch(orders(4))

    assert platform.settings(4)["connection"] == {
        "kind": "tls",
        "bus": "tls://10.0.0.7:8081",
        "manager": "10.0.0.7:8081",
        "folder": "",
        "authority": "authority",
    }


async def test_missing_commands_are_named(platform: Platform) -> None:
    adapter = platform.adapter(commandsFolder="/nonexistent")

    (problem,) = await adapter.check()

    assert "sbatch" in problem.rule
    assert "commandsFolder" in problem.remedy


async def test_wait_ends_when_agents_are_terminated(platform: Platform) -> None:
    adapter = platform.adapter(pollIntervalSeconds=3600)
    await adapter.launch(orders(4))
    await adapter.agents()
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    assert not waiting.done()

    await adapter.terminate([name(4)])

    async with asyncio.timeout(30):
        await waiting
    assert await adapter.agents() == []


async def test_prepared_pool_has_the_bundle_until_the_rest_is_cleaned(platform: Platform) -> None:
    adapter = platform.adapter()

    await adapter.prepare()
    bundles = [one.name for one in (platform.home / "bundles").iterdir()]
    await adapter.clean_rest()

    assert len(bundles) == 1
    assert not platform.home.exists()


async def test_live_jobs_and_folders_of_the_installation_are_left_over(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4))
    platform.slurm.jobs += [
        TableJob("7", f"nni-{INSTALLATION}-exp-b-1"),
        TableJob("8", f"nni-{INSTALLATION}-exp-c-1", "COMPLETED"),
    ]

    found = await adapter.leftovers()

    assert [(left.pool, left.agents) for left in found] == [
        (POOL, (str(name(4)),)),
        ("exp-b", (f"nni-{INSTALLATION}-exp-b-1",)),
    ]


async def test_job_beyond_a_limit_of_submissions_may_be_taken_later(platform: Platform) -> None:
    platform.slurm.failures["sbatch"] = (
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job "
        "submit limit, user's size and/or time limits)\n"
    )

    (failure,) = await platform.adapter().launch(orders(4))

    assert not failure.permanent
    assert failure.reason.startswith("a limit of the account or the quality of service is reached")
    assert platform.folders() == []


@pytest.mark.parametrize(
    ("options", "python"),
    [
        ({"python": "/opt/a python"}, "exec '/opt/a python' -I -S "),
        ({"image": "/a.sif", "pythonVersion": "3.12"}, "exec apptainer exec /a.sif python3 -I -S "),
        ({}, r"exec /\S+ -I -S "),
    ],
)
async def test_agent_runs_by_the_python_of_the_section_the_image_or_the_machine(
    platform: Platform, options: dict[str, object], python: str
) -> None:
    await platform.adapter(**options).launch(orders(4))

    assert re.match(python, platform.slurm.scripts[0].splitlines()[-1])


async def test_folder_of_the_output_of_jobs_is_made(platform: Platform, tmp_path: Path) -> None:
    folder = tmp_path / "logs of jobs" / "a"

    await platform.adapter(logFolder=str(folder)).launch(orders(4))

    assert folder.is_dir()
    assert f"#SBATCH --output='{folder}/slurm-%j.log'" in platform.slurm.scripts[0]


async def test_capacity_is_that_of_the_queue(platform: Platform) -> None:
    assert await platform.adapter().capacity() is None


async def test_agents_that_exist_are_launched_no_second_time(platform: Platform) -> None:
    adapter = platform.adapter()
    await adapter.launch(orders(4))

    assert await adapter.launch(orders(4, 5)) == []

    assert sorted(job.name for job in platform.slurm.jobs) == [str(name(4)), str(name(5))]
    assert len(platform.slurm.scripts) == 2
