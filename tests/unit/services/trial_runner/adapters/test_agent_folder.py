import os
import stat
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError
from svc_trial_runner.adapters.agent_folder import (
    open_work,
    runner_id,
    trial_sdk_folder,
    write_tools,
)
from tests.support.unreadable_files import make_unreadable


def test_id_is_drawn_once(tmp_path: Path) -> None:
    first = runner_id(tmp_path / "a")

    assert runner_id(tmp_path / "a") == first
    assert runner_id(tmp_path / "b") != first


def test_unusable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FailedPreconditionError, match="file"):
        runner_id(tmp_path / "file")


def test_trial_side_of_the_library_is_found() -> None:
    assert (trial_sdk_folder() / "warm.py").is_file()


def test_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nni", None)

    with pytest.raises(FailedPreconditionError, match="nni is not installed"):
        trial_sdk_folder()


def test_folders_named_like_the_library_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = ModuleType("nni")
    namespace.__spec__ = ModuleSpec("nni", None)
    monkeypatch.setitem(sys.modules, "nni", namespace)

    with pytest.raises(FailedPreconditionError, match="nni is not installed"):
        trial_sdk_folder()


def test_command_for_shell_trials_works_outside_of_an_experiment(tmp_path: Path) -> None:
    tools = write_tools(tmp_path, trial_sdk_folder())

    result = subprocess.run(
        ["nni-trial", "get"],
        env={"PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout.strip() == "{}"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff\xfe", b"{}", b"[]", b"7", b'{"runner_id": 5}', b'{"runner_id": "a.>"}'),
        b"[" * 100_000,
    ],
)
def test_damaged_file_is_set_aside_and_a_new_id_drawn(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "runner.json").write_bytes(content)

    first = runner_id(tmp_path)

    assert first.startswith("runner-")
    assert runner_id(tmp_path) == first
    (aside,) = tmp_path.glob("runner.json.damaged-*")
    assert aside.read_bytes() == content


def test_folder_in_place_of_the_file_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "runner.json").mkdir()

    assert runner_id(tmp_path) == runner_id(tmp_path)


@pytest.mark.parametrize("name", ["nni-trial", ".nni-trial.new"])
def test_folder_in_place_of_the_command_is_set_aside(tmp_path: Path, name: str) -> None:
    (tmp_path / "bin" / name / "content").mkdir(parents=True)

    tools = write_tools(tmp_path, trial_sdk_folder())

    assert (tools / "nni-trial").is_file()


def test_unreadable_file_is_set_aside_and_a_new_id_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = runner_id(tmp_path)
    make_unreadable(monkeypatch, tmp_path / "runner.json")

    assert runner_id(tmp_path) not in {"", first}
    assert len(list(tmp_path.glob("runner.json.damaged-*"))) == 1


def test_given_id_overrides_the_stored_one(tmp_path: Path) -> None:
    stored = runner_id(tmp_path)

    assert runner_id(tmp_path, "given") == "given"
    assert runner_id(tmp_path) == stored


def test_launcher_that_fails_is_an_error_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "launcher.py").write_text("import sys; sys.exit('no room')")

    with pytest.raises(FailedPreconditionError, match=r"written to .*/bin: no room"):
        write_tools(tmp_path, tmp_path)


def test_tools_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="cannot be used"):
        write_tools(tmp_path / "missing", trial_sdk_folder(), CodeUser(os.geteuid(), os.getegid()))


def test_other_users_enter_the_work_folder_and_list_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o702)

    open_work(tmp_path / "work", CodeUser(os.geteuid(), os.getegid()))

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, tmp_path / "work")]
    assert modes == [0o711, 0o711]


def test_work_folder_is_made_once_with_its_parents(tmp_path: Path) -> None:
    for _ in range(2):
        open_work(tmp_path / "home" / "work", CodeUser(os.geteuid(), os.getegid()))

    assert (tmp_path / "home" / "work").is_dir()


def test_work_folder_of_the_same_user_is_left_as_it_is(tmp_path: Path) -> None:
    open_work(tmp_path / "work", SAME_USER)

    assert not (tmp_path / "work").exists()


def test_work_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FailedPreconditionError, match="file/work cannot be used"):
        open_work(tmp_path / "file" / "work", CodeUser(os.geteuid(), os.getegid()))
