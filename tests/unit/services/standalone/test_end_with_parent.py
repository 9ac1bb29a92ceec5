"""The program itself, run as the supervisor runs it."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from svc_standalone import end_with_parent

PROGRAM = (sys.executable, "-I", "-S", end_with_parent.__file__)


def run(*arguments: str, parent: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, str(os.getpid() if parent is None else parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_runs_with_its_arguments_and_status() -> None:
    done = run("sh", "-c", 'echo "$0 $1"; exit 3', "one", "a b")

    assert (done.stdout, done.returncode) == ("one a b\n", 3)


def test_signals_that_python_ignores_have_their_default_action_again() -> None:
    done = run("sh", "-c", "kill -PIPE $$; echo ignored")

    assert (done.returncode, done.stdout) == (-signal.SIGPIPE, "")


def test_a_command_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"

    done = run(str(missing))

    assert done.returncode == 127
    assert done.stderr == f"{missing} cannot be run: No such file or directory\n"


def test_nothing_runs_if_the_parent_has_ended_already() -> None:
    done = run("echo", "runs", parent=os.getppid())

    assert (done.returncode, done.stdout) == (127, "")


def test_the_command_is_killed_when_its_parent_ends() -> None:
    """The parent starts the command, whose pid it prints, and is killed."""
    code = (
        "import os, subprocess, sys; "
        "command = [*sys.argv[1:], str(os.getpid()), 'sh', '-c', 'echo $$; exec sleep 600']; "
        "subprocess.Popen(command).wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *PROGRAM], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()

        assert select.select([ended], [], [], 60)[0]  # readable once the process has ended
        os.close(ended)
