"""Commands on this machine."""

import asyncio
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.slurm.command_runner import LocalCommandRunner, UnusableRunner
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError
from tests.support import wait

LIMIT_S = 30.0


async def test_command_has_status_output_and_errors() -> None:
    result = await LocalCommandRunner().run(
        ["sh", "-c", "cat; echo oh >&2; exit 3"], content=[b"i", b"n"], limit_s=LIMIT_S
    )

    assert (result.exit_status, result.output, result.error_output) == (3, b"in", b"oh\n")


async def test_arguments_are_not_read_by_a_shell() -> None:
    result = await LocalCommandRunner().run(["echo", "$HOME; `ls`"], limit_s=LIMIT_S)

    assert result.output == b"$HOME; `ls`\n"


async def test_program_that_is_missing_is_an_error() -> None:
    with pytest.raises(PlatformError, match=r"no-such-program cannot be started"):
        await LocalCommandRunner().run(["no-such-program"], limit_s=LIMIT_S)


async def test_command_that_does_not_end_in_time_is_an_error() -> None:
    with pytest.raises(PlatformError, match=r"sleep has not ended within 0.05 s"):
        await LocalCommandRunner().run(["sleep", "1000"], limit_s=0.05)


async def test_command_of_a_cancelled_call_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! >{tmp_path}/draft; mv {tmp_path}/draft {tmp_path}/child; wait"
    task = asyncio.create_task(LocalCommandRunner().run(["sh", "-c", script], limit_s=1000.0))
    await asyncio.to_thread(wait.until, (tmp_path / "child").exists, LIMIT_S)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    child = int((tmp_path / "child").read_text())
    wait.until(lambda: not _runs(child), LIMIT_S)


async def test_content_that_a_command_does_not_read_is_no_error() -> None:
    result = await LocalCommandRunner().run(["true"], content=[b"0" * 1_000_000], limit_s=LIMIT_S)

    assert result.exit_status == 0


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_runner_of_a_login_that_breaks_a_rule_raises_it_at_each_use(tmp_path: Path) -> None:
    runner = UnusableRunner(PlatformProblem("user", "must be given", "", "name a user"))

    with pytest.raises(PlatformError, match="user must be given") as caught:
        await runner.run(["touch", f"{tmp_path}/made"], limit_s=LIMIT_S)
    with pytest.raises(PlatformError, match="user must be given"):
        await runner.connect()

    assert (caught.value.remedy, caught.value.permanent) == ("name a user", True)
    assert not runner.is_here
    assert not list(tmp_path.iterdir())


def test_only_the_local_runner_runs_commands_on_this_machine() -> None:
    broken = PlatformProblem("login", "must be a login")

    assert LocalCommandRunner().is_here is True
    assert UnusableRunner(broken).is_here is False
