import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_commands import bundle_digest
from svc_trial_runner.fleet.adapters.training_services.job_folders import COMMAND, JobFolders
from svc_trial_runner.fleet.adapters.training_services.options import parse_options
from svc_trial_runner.fleet.ports import PlatformError

OPTIONS = parse_options({"pythonVersion": "3.12", "python": "a python"})


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / "nni-agent-py-0123.tar.gz"
    file.write_bytes(b"packed")
    return file


def test_folder_has_bundle_settings_and_start_for_the_owner_only(
    tmp_path: Path, bundle: Path
) -> None:
    folders = JobFolders(tmp_path)

    folder = folders.write("a", bundle, b'{"name": "a"}', OPTIONS)

    assert folder == tmp_path / "jobs" / "a"
    assert (folder / "bundle.tar.gz").read_bytes() == b"packed"
    assert json.loads((folder / "settings.json").read_text()) == {"name": "a"}
    assert json.loads((folder / "job.json").read_text()) == {
        "digest": bundle_digest(bundle),
        "python": [3, 12],
    }
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "settings.json").stat().st_mode & 0o777 == 0o600


def test_command_calls_the_interpreter_of_the_section_in_the_folder(
    tmp_path: Path, bundle: Path
) -> None:
    program = tmp_path / "a python"
    program.write_text("#!/bin/sh\necho $PWD $*\n")
    program.chmod(0o700)
    options = parse_options({"python": str(program)})
    folder = JobFolders(tmp_path).write("a", bundle, b"{}", options)

    output = subprocess.run(
        ["sh", "-c", COMMAND], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    ).stdout

    assert output == f"{folder} -I -S start.py\n"


def test_files_may_be_written_again(tmp_path: Path, bundle: Path) -> None:
    folders = JobFolders(tmp_path)

    for settings in (b"{}", b'{"slots": 2}'):
        folder = folders.write("a", bundle, settings, OPTIONS)

    assert json.loads((folder / "settings.json").read_text()) == {"slots": 2}
    assert bundle.read_bytes() == b"packed"


def test_removed_folders_are_gone_and_the_others_stay(tmp_path: Path, bundle: Path) -> None:
    folders = JobFolders(tmp_path)
    for name in ("a", "b"):
        folders.write(name, bundle, b"{}", OPTIONS)

    folders.remove("a")
    folders.remove("a")

    assert ("a" in folders, "b" in folders) == (False, True)
    folders.remove_all()
    assert "b" not in folders
    assert bundle.exists()


def test_files_that_cannot_be_written_are_an_error_of_the_platform(
    tmp_path: Path, bundle: Path
) -> None:
    bundle.unlink()

    with pytest.raises(PlatformError, match="files of a job cannot be written"):
        JobFolders(tmp_path).write("a", bundle, b"{}", OPTIONS)


def test_bundle_on_the_same_file_system_is_not_copied(tmp_path: Path, bundle: Path) -> None:
    folder = JobFolders(tmp_path).write("a", bundle, b"{}", OPTIONS)

    assert (folder / "bundle.tar.gz").stat().st_ino == bundle.stat().st_ino
    assert sorted(path.name for path in folder.iterdir()) == [
        "bundle.tar.gz", "job.json", "program.py", "settings.json", "start.py", "start.sh"
    ]  # fmt: skip


def test_bundle_that_cannot_be_linked_is_copied(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)

    folder = JobFolders(tmp_path).write("a", bundle, b"{}", OPTIONS)

    assert (folder / "bundle.tar.gz").read_bytes() == b"packed"
    assert (folder / "bundle.tar.gz").stat().st_ino != bundle.stat().st_ino
