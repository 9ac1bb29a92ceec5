import asyncio
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_commands import bundle_digest, worker_program
from svc_trial_runner.fleet.adapters.ray_actors.agent_actor import (
    ENDED,
    RUNNING,
    AgentActor,
    BundleActor,
    network_key,
    run_program,
)
from tests.support import sleeping_agents, wait
from tests.support.sleeping_agents import SleepingAgents

LIMIT_S = 30.0
NAME = "nni-0123abcd-exp-suite-1"


class NodeActor(AgentActor):
    """Actor in the process of a test: its bundle is a file, and its end ends nothing else."""

    bundle: Path

    def cut(self) -> None:
        """End the actor as its process would: the pipe to the agent is closed."""
        if self._tether is not None:
            self._tether.close()
        self._thread.join()

    def _fetch_bundle(self) -> bytes:
        return BundleActor(self.bundle.read_bytes()).content()

    def _release(self) -> None:
        """Do nothing: the process is that of the test."""


def actor(folder: Path, key: str) -> NodeActor:
    """Return an actor whose settings are for one network, once its agent runs or has ended."""
    bundle = asyncio.run(SleepingAgents(folder).bundle((3, 11), ""))
    NodeActor.bundle = bundle
    started = NodeActor(
        {
            "name": NAME,
            "digest": bundle_digest(bundle),
            "holder": "holder",
            "namespace": "nni",
            "folder": str(folder / "home"),
            "settings": {key: b"{}"},
            "program": worker_program(),
        }
    )
    wait.until(lambda: started.state()[0] in {RUNNING, ENDED}, LIMIT_S)
    return started


@pytest.fixture
def running(tmp_path: Path) -> Iterator[NodeActor]:
    found = actor(tmp_path, network_key())
    yield found
    found.cut()


def test_agent_runs_on_the_host_of_its_actor(running: NodeActor) -> None:
    assert running.state() == (RUNNING, os.uname().nodename, "")


def test_end_removes_the_folder_of_the_agent(running: NodeActor, tmp_path: Path) -> None:
    running.end(5.0)
    wait.until(lambda: running.state()[0] == ENDED, LIMIT_S)

    assert list((tmp_path / "home" / "agents").iterdir()) == []


def test_agent_ends_with_its_actor_and_its_folder_is_removed(
    running: NodeActor, tmp_path: Path
) -> None:
    process = (tmp_path / "home" / "agents" / NAME / "process.json").read_text()
    descriptor = os.pidfd_open(int(process.partition('"pid": ')[2].partition(",")[0]))

    running.cut()
    readable, _, _ = select.select([descriptor], [], [], 30)
    os.close(descriptor)

    assert readable
    assert list((tmp_path / "home" / "agents").iterdir()) == []


def test_node_that_does_not_reach_the_services_is_the_reason(tmp_path: Path) -> None:
    ended = actor(tmp_path, "another network")

    phase, _, reason = ended.state()
    ended.cut()

    assert phase == ENDED
    assert "does not reach NNI's services" in reason


def test_settings_for_any_network_are_taken_elsewhere(tmp_path: Path) -> None:
    found = actor(tmp_path, "")

    phase = found.state()[0]
    found.cut()

    assert phase == RUNNING


def test_reason_of_an_agent_that_ends_by_itself_is_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = sleeping_agents.RUN.replace("time.sleep(1_000_000)", 'sys.exit("ERROR: no bus")')
    monkeypatch.setattr(sleeping_agents, "RUN", ends)
    found = actor(tmp_path, "")
    wait.until(lambda: found.state()[0] == ENDED, LIMIT_S)

    reason = found.state()[2]
    found.cut()

    assert "ERROR: no bus" in reason


def test_program_runs_with_its_arguments_and_content() -> None:
    program = b"import os, sys; sys.stderr.write(os.getcwd()); print(sys.argv[1:], f.read())"

    output, errors, code = run_program(program, ["a", "b c"], b"content")

    assert (output, errors, code) == (b"['a', 'b c'] b'content'\n", b"/", 0)


def test_exit_code_of_a_program_is_returned() -> None:
    assert run_program(b"sys.exit(3)", []) == (b"", b"", 3)


def test_network_is_that_of_the_system() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

    assert network_key() == f"{boot}:{Path('/proc/self/ns/net').readlink()}"


def ended_actor(folder: Path, program: bytes) -> str:
    """Return the reason why an actor ended whose worker's program is another one."""
    found = NodeActor(
        {
            "name": NAME,
            "digest": "ab",
            "holder": "holder",
            "namespace": "nni",
            "folder": str(folder / "home"),
            "settings": {"": b"{}"},
            "program": program,
        }
    )
    wait.until(lambda: found.state()[0] == ENDED, LIMIT_S)
    found.cut()
    return found.state()[2]


def test_command_that_fails_is_the_reason_with_its_last_words(tmp_path: Path) -> None:
    program = b"sys.stderr.write('x' * 600 + ' the end '); sys.exit(3)"

    assert ended_actor(tmp_path, program) == "settings ended with 3: " + "x" * 477


def test_error_of_the_worker_is_the_reason(tmp_path: Path) -> None:
    line = b'print(\'NNI-WORKER {"error": {"message": "no space"}}\'); print("bye")'

    assert ended_actor(tmp_path, line) == "no space"


def test_actor_that_starts_has_its_host(tmp_path: Path) -> None:
    release = tmp_path / "release"
    os.mkfifo(release)
    found = NodeActor(
        {
            "name": NAME, "digest": "ab", "holder": "holder", "namespace": "nni",
            "folder": str(tmp_path / "home"), "settings": {"": b"{}"},
            "program": f"open({str(release)!r}).read(); sys.exit(1)".encode(),
        }
    )  # fmt: skip

    state = found.state()
    release.write_text("go on")
    found.cut()

    assert state == ("starting", os.uname().nodename, "")
    assert found.state()[0] == ENDED
