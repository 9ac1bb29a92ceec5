import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from svc_common.errors import FailedPreconditionError
from svc_trial_runner.adapters.agent_folder import runner_id, trial_sdk_folder, write_tools


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


def test_folder_in_place_of_the_command_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "bin" / "nni-trial").mkdir(parents=True)

    tools = write_tools(tmp_path, trial_sdk_folder())

    assert (tools / "nni-trial").is_file()
