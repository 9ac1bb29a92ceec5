import asyncio
import os
import sys
from pathlib import Path

import pytest

from svc_trial_runner.agent_settings import ConnectionKind, parse_agent_settings
from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerFolders
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter, gpu_indices
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.local_platforms import local_context

FAILING = (sys.executable, "-S", "-c", "raise SystemExit('no bus at this address')")


COPY = "{}/copy"


async def ended(adapter: LocalAgentsAdapter) -> PlatformAgent:
    """Return the only agent when it has ended."""
    async with asyncio.timeout(60):
        while (agents := await adapter.agents())[0].phase is not AgentPhase.ENDED:
            await adapter.wait_changed()
    return agents[0]


async def test_agent_gets_its_settings_on_the_standard_input(tmp_path: Path) -> None:
    copy = (sys.executable, "-S", "-c", f"print(open(0).read(), file=open({COPY!r}, 'w'))")
    context = local_context(tmp_path, INSTALLATION, POOL, {"gpuIndices": [1, 2]})
    adapter = LocalAgentsAdapter(context, [part.format(tmp_path) for part in copy])
    await adapter.launch([agent_order(agent_name(1))])
    await ended(adapter)

    settings = parse_agent_settings((tmp_path / "copy").read_bytes())
    assert (settings.name, settings.pool) == (str(agent_name(1)), POOL)
    assert settings.connection.kind is ConnectionKind.DIRECT
    assert settings.gpu_indices == (1, 2)
    await adapter.clean()


async def test_agent_that_ends_at_once_is_listed_with_its_last_words(tmp_path: Path) -> None:
    adapter = LocalAgentsAdapter(local_context(tmp_path, INSTALLATION, POOL), FAILING)
    await adapter.launch([agent_order(agent_name(1))])

    assert "no bus at this address" in (await ended(adapter)).reason
    await adapter.clean()
    assert await adapter.agents() == []


async def test_agent_that_cannot_be_started_is_a_failure_with_the_reason(tmp_path: Path) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL)
    adapter = LocalAgentsAdapter(context, FAILING)
    await adapter.prepare()
    # A link takes the place of the agent's folder.
    folder = WorkerFolders(str(context.folder)).agent(str(agent_name(1)))
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(tmp_path / "nowhere")

    (failure,) = await adapter.launch([agent_order(agent_name(1))])

    assert failure.name == agent_name(1)
    assert failure.reason


async def test_programs_are_replaced_while_an_agent_reads_them(tmp_path: Path) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL)
    await LocalAgentsAdapter(context, FAILING).prepare()
    programs = sorted(tmp_path.glob("**/*.py"))
    assert [program.name for program in programs] == ["program.py", "run.py"]
    for program in programs:
        with program.open("rb") as read:
            await LocalAgentsAdapter(context, FAILING).prepare()
            assert not os.path.samestat(os.fstat(read.fileno()), program.stat())


@pytest.mark.parametrize(
    ("value", "indices"), [(None, None), (1, (1,)), ("0,2", (0, 2)), ([3], (3,))]
)
def test_gpu_indices_are_read(value: object, indices: tuple[int, ...] | None) -> None:
    assert gpu_indices({"gpuIndices": value}) == indices


@pytest.mark.parametrize("value", ["a", -1, [0, -2], 1.5, [1.5], True, [True]])
def test_other_gpu_indices_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be an integer >= 0"):
        gpu_indices({"gpuIndices": value})


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        ({}, []),
        ({"slots": 1}, []),
        ({"slots": 4, "gpuIndices": "0,1"}, []),
        ({"slots": 0}, [("slots", "must be an integer >= 1", "0")]),
        ({"slots": True}, [("slots", "must be an integer >= 1", "True")]),
        ({"slots": "2"}, [("slots", "must be an integer >= 1", "'2'")]),
        ({"gpuIndices": "a"}, [("gpuIndices", "must be integers >= 0", "'a'")]),
        (
            {"slots": -1, "gpuIndices": -1},
            [
                ("slots", "must be an integer >= 1", "-1"),
                ("gpuIndices", "must be integers >= 0", "-1"),
            ],
        ),
    ],
)
async def test_check_names_the_options_that_break_a_rule(
    tmp_path: Path, options: dict[str, object], problems: list[tuple[str, str, str]]
) -> None:
    adapter = LocalAgentsAdapter(local_context(tmp_path, INSTALLATION, POOL, options), FAILING)

    found = [(one.field, one.rule, one.value) for one in await adapter.check()]

    assert found == problems
    assert await adapter.capacity() == 1


async def test_wait_without_a_running_agent_has_no_end(tmp_path: Path) -> None:
    adapter = LocalAgentsAdapter(local_context(tmp_path, INSTALLATION, POOL), FAILING)
    assert await adapter.agents() == []

    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    is_waiting = not waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})

    assert is_waiting


async def test_agents_of_the_installation_are_left_over_by_pool(tmp_path: Path) -> None:
    folder = tmp_path / "pools" / POOL / "local"
    folder.mkdir(parents=True)
    adapter = LocalAgentsAdapter(local_context(folder, INSTALLATION, POOL), FAILING)
    await adapter.launch([agent_order(agent_name(1))])
    WorkerFolders(str(tmp_path / "pools" / "other" / "local")).agent(
        f"nni-{INSTALLATION}-other-7"
    ).mkdir(parents=True)

    found = await adapter.leftovers()
    await adapter.clean()

    assert [(one.pool, one.agents) for one in found] == [
        (POOL, (str(agent_name(1)),)),
        ("other", (f"nni-{INSTALLATION}-other-7",)),
    ]


async def test_agent_of_another_pool_in_the_folder_is_none_of_the_adapter(tmp_path: Path) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL)
    other = WorkerFolders(str(context.folder)).agent(f"nni-{INSTALLATION}-{POOL}-b-1")
    other.mkdir(parents=True)
    adapter = LocalAgentsAdapter(context, FAILING)

    assert await adapter.agents() == []
    await adapter.clean()

    assert other.is_dir()


async def test_folders_of_agents_are_private_before_one_is_launched(tmp_path: Path) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL)
    folders = WorkerFolders(str(context.folder))

    await LocalAgentsAdapter(context, FAILING).prepare()

    for folder in (folders.base, folders.bundles, folders.agents):
        assert Path(folder).stat().st_mode & 0o777 == 0o700


async def test_agent_that_cannot_be_started_leaves_nothing_behind(tmp_path: Path) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL)
    adapter = LocalAgentsAdapter(context, FAILING)
    await adapter.prepare()
    folder = WorkerFolders(str(context.folder)).agent(str(agent_name(1)))
    folder.mkdir(parents=True)
    (folder / "settings.json").mkdir()  # where a file is to be written

    failures = await adapter.launch([agent_order(agent_name(1))])

    assert [failure.name for failure in failures] == [agent_name(1)]
    assert not folder.exists()
