"""Environment after the login scripts of a home, and the lines of a platform."""

import os
import select
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import svc_trial_runner
from svc_trial_runner.adapters.login_environment import (
    LoginEnvironments,
    own_roots,
    without_bundle,
)
from svc_trial_runner.ports import LaunchError

PATH = os.environ["PATH"]


def environments(
    home: Path, lines: Sequence[str] = (), python_path: str = "", limit_s: float = 60.0
) -> LoginEnvironments:
    own = {"PATH": PATH, "HOME": str(home), "FROM_SSHD": "yes"}
    return LoginEnvironments(own, lines, python_path, Path("/api/hook"), limit_s)


async def test_login_scripts_count_and_what_they_print_does_not(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("echo Welcome; echo to >&2; export SITE='a\nb=c'\n")

    found = await environments(tmp_path).load("/manager/environment.json")

    assert (found.variables["SITE"], found.variables["FROM_SSHD"]) == ("a\nb=c", "yes")
    assert found.variables["PYTHONPATH"] == "/api/hook"
    assert not {"_", "PWD", "SHLVL"} & set(found.variables)
    assert found.interpreter is None


async def test_names_of_variables_are_whole(tmp_path: Path) -> None:
    found = await environments(tmp_path, ["export SITE=1"]).load("")

    assert set(found.variables) == {"PATH", "HOME", "FROM_SSHD", "SITE", "PYTHONPATH"}


async def test_lines_run_in_order_after_the_login(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text('module() { export MODULES="$MODULES:$2"; }\n')

    found = await environments(tmp_path, ["module load a", "module load 'b c'"]).load("")

    assert found.variables["MODULES"] == ":a:b c"


async def test_environment_is_captured_once(tmp_path: Path) -> None:
    known = environments(tmp_path, [f"echo again >>{tmp_path}/runs"])

    assert await known.load("one") is await known.load("two")
    assert (tmp_path / "runs").read_text() == "again\n"


async def test_line_that_fails_is_named_with_its_own_words_and_tried_again(tmp_path: Path) -> None:
    known = environments(tmp_path, ["true", f"cat {tmp_path}/gone", "export AFTER=1"])

    with pytest.raises(LaunchError, match=r"(?s)gone: No such file.*in the line cat .*gone"):
        await known.load("")
    (tmp_path / "gone").touch()

    assert (await known.load("")).variables["AFTER"] == "1"


async def test_last_500_characters_of_a_failure_are_shown(tmp_path: Path) -> None:
    line = "printf %0600d 0 >&2; false"

    with pytest.raises(LaunchError) as failure:
        await environments(tmp_path, [line]).load("")

    shown = str(failure.value).partition("has failed: ")[2]
    assert len(shown) == 500
    assert shown.endswith(f"in the line {line}")


async def test_lines_run_at_home_or_at_the_root_where_there_is_no_home(tmp_path: Path) -> None:
    line = "export PLACE=$PWD"

    found = [
        (await environments(home, [line]).load("")).variables["PLACE"]
        for home in (tmp_path, tmp_path / "missing")
    ]

    assert found == [str(tmp_path), "/"]


async def test_line_that_ends_the_shell_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="a line of the platform has failed"):
        await environments(tmp_path, ["exit 0"]).load("")


async def test_line_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"took more than 0\.1 s"):
        await environments(tmp_path, ["sleep 300"], limit_s=0.1).load("")


async def test_program_left_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    found = await environments(tmp_path, ["sleep 300 &", "export LEFT=$!"]).load("")

    assert found.variables["FROM_SSHD"] == "yes"
    with suppress(ProcessLookupError):  # it has ended already
        left = os.pidfd_open(int(found.variables["LEFT"]))
        assert select.select([left], [], [], 30.0)[0]
        os.close(left)


async def test_broken_login_script_leaves_the_environment_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("exit 3\n")

    found = await environments(tmp_path).load("")

    assert found.variables["PATH"] == PATH


@pytest.mark.claim("platform", 76)
async def test_python_of_the_platform_is_first_on_the_path(tmp_path: Path) -> None:
    found = await environments(tmp_path, ["PATH=/of/module:$PATH"], "/opt/py/bin").load("")

    assert found.variables["PATH"].split(":")[:2] == ["/opt/py/bin", "/of/module"]


def test_folders_of_the_agent_leave_the_path_of_python() -> None:
    own = str(Path(svc_trial_runner.__file__).parents[1])
    roots = own_roots()

    assert own in roots
    assert without_bundle({"PYTHONPATH": f"{own}:/mine::", "A": "b"}, roots) == {
        "A": "b",
        "PYTHONPATH": "/mine",
    }
    assert without_bundle({"PYTHONPATH": own, "A": "b"}, roots) == {"A": "b"}
