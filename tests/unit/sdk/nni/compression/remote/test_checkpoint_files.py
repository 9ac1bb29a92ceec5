"""Unpacking of a step's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.compression.remote.checkpoint_files import unpack_checkpoint
from nni.experiment.errors import ConfigError, ServiceFailedError
from tests.support.compression_log import archive_of


def test_files_are_written_whole(tmp_path: Path) -> None:
    _, content = archive_of({"./step.json": b"{}", "model.safetensors": b"x" * 5000})

    unpack_checkpoint([content[:700], content[700:]], tmp_path / "new" / "folder")

    folder = tmp_path / "new" / "folder"
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == {
        "step.json": 2,
        "model.safetensors": 5000,
    }


@pytest.mark.parametrize("name", ["../escape", "/etc/cron.d/x", "code.py", "a/step.json"])
def test_member_that_is_no_file_of_a_step_is_refused(tmp_path: Path, name: str) -> None:
    _, content = archive_of({name: b"x"})

    with pytest.raises(ServiceFailedError, match="is no file of a step"):
        unpack_checkpoint([content], tmp_path / "here")

    assert list(tmp_path.rglob("*")) == [tmp_path / "here"]


def test_link_is_refused(tmp_path: Path) -> None:
    _, content = archive_of({}, link="step.json")

    with pytest.raises(ServiceFailedError, match="is no file of a step"):
        unpack_checkpoint([content], tmp_path)


def test_damaged_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServiceFailedError, match="damaged"):
        unpack_checkpoint([b"no archive" * 100], tmp_path)


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    _, content = archive_of({"step.json": b"{}"})

    with pytest.raises(ConfigError, match="folder cannot be written"):
        unpack_checkpoint([content], tmp_path / "file")
