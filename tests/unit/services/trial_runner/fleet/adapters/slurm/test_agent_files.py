"""Files of agents on a shared file system; here it is this machine's."""

import os
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.slurm.agent_files import AgentFiles
from svc_trial_runner.fleet.adapters.slurm.command_runner import LocalCommandRunner, UnusableRunner
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.local_platforms import NoBundles
from tests.support.sleeping_agents import SleepingAgents

AGENT = "nni-0123abcd-exp-a-7"


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    options = SlurmOptions(home=str(tmp_path / "nni"))
    return AgentFiles(LocalCommandRunner(), options, SleepingAgents(tmp_path))


async def test_bundle_is_sent_once(files: AgentFiles, tmp_path: Path) -> None:
    digest = await files.send_bundle()
    program = tmp_path / "nni" / "bundles" / digest / "run.py"
    written = program.stat().st_mtime_ns

    assert await files.send_bundle() == digest
    assert program.stat().st_mtime_ns == written


async def test_settings_are_readable_by_their_owner_only(files: AgentFiles, tmp_path: Path) -> None:
    await files.write_settings(AGENT, "ab", b"{}")

    path = tmp_path / "nni" / "agents" / AGENT / "settings.json"
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_folders_of_a_prefix_are_listed_and_removed(files: AgentFiles) -> None:
    await files.write_settings(AGENT, "ab", b"{}")
    await files.write_settings("nni-0123abcd-exp-ab-1", "ab", b"{}")

    states = await files.states("nni-0123abcd-exp-a-")
    await files.remove([AGENT])

    assert [(name, state["state"]) for name, state in states.items()] == [(AGENT, "prepared")]
    assert await files.states("nni-0123abcd-exp-a-") == {}


async def test_folder_of_an_agent_that_was_killed_elsewhere_is_removed(
    files: AgentFiles, tmp_path: Path
) -> None:
    await files.write_settings(AGENT, "ab", b"{}")
    folder = tmp_path / "nni" / "agents" / AGENT
    (folder / "process.json").write_text('{"machine": "another:1", "host": "another"}')

    await files.remove([AGENT])

    assert not folder.exists()


async def test_bundles_stay_while_an_agent_has_a_folder(files: AgentFiles, tmp_path: Path) -> None:
    digest = await files.send_bundle()
    await files.write_settings(AGENT, "ab", b"{}")

    await files.remove_rest()
    assert (tmp_path / "nni" / "bundles" / digest).is_dir()

    await files.remove([AGENT])
    await files.remove_rest()
    assert not (tmp_path / "nni").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", "{tmp}/nni/slurm"), ("/scratch/logs", "/scratch/logs"), ("~/logs", "{home}/logs")],
)
async def test_output_of_jobs_lies_in_the_given_folder_or_beside_the_agents(
    tmp_path: Path, given: str, expected: str
) -> None:
    options = SlurmOptions(home=str(tmp_path / "nni"), log_folder=given)
    files = AgentFiles(LocalCommandRunner(), options, SleepingAgents(tmp_path))

    facts = await files.facts()

    assert files.log_folder(facts) == expected.format(tmp=tmp_path, home=facts.home)


class RecordingBundles:
    """Store that notes for which Python and platform a bundle was asked."""

    def __init__(self, folder: Path) -> None:
        self._bundles = SleepingAgents(folder)
        self.asked: list[tuple[tuple[int, int], str]] = []

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        self.asked.append((python, platform_tag))
        return await self._bundles.bundle(python, platform_tag)


@pytest.mark.parametrize("version", ["3.12", "3.12.4"])
async def test_bundle_for_an_image_is_for_its_python_and_an_old_c_library(
    tmp_path: Path, version: str
) -> None:
    options = SlurmOptions(
        home=str(tmp_path / "nni"), image="/images/a.sif", python_version=version
    )
    bundles = RecordingBundles(tmp_path)
    files = AgentFiles(LocalCommandRunner(), options, bundles)

    await files.send_bundle()

    assert bundles.asked == [((3, 12), f"manylinux_2_17_{os.uname().machine}")]


async def test_bundle_without_an_image_is_for_the_machine(tmp_path: Path) -> None:
    bundles = RecordingBundles(tmp_path)
    files = AgentFiles(LocalCommandRunner(), SlurmOptions(home=str(tmp_path / "nni")), bundles)

    await files.send_bundle()
    facts = await files.facts()

    assert bundles.asked == [(facts.python, facts.platform_tag)]
    assert await files.facts() is facts


async def test_removal_of_nothing_runs_no_command() -> None:
    runner = UnusableRunner(PlatformProblem("user", "must be given"))
    files = AgentFiles(runner, SlurmOptions(), NoBundles())

    await files.remove([])

    with pytest.raises(PlatformError, match="user must be given"):
        await files.remove([AGENT])


async def test_folder_is_made_with_those_above_it(files: AgentFiles, tmp_path: Path) -> None:
    await files.make_folder(str(tmp_path / "a b" / "-c"))
    await files.make_folder(str(tmp_path / "a b" / "-c"))

    assert (tmp_path / "a b" / "-c").is_dir()
