from __future__ import annotations

from pathlib import Path

import pytest

from nni.experiment.archive_files import unpack_files
from nni.experiment.errors import ConfigError, ServiceFailedError
from tests.support.compression_log import archive_of


def text_file(name: str, is_file: bool) -> str | None:
    return name.rpartition("/")[2] if is_file and name.endswith(".txt") else None


def test_chosen_files_are_written_and_no_others(tmp_path: Path) -> None:
    _, content = archive_of({"a/one.txt": b"1", "./two.txt": b"2", "three.bin": b"3"})

    written = unpack_files([content], tmp_path / "new", text_file)

    assert {path.name: path.read_bytes() for path in written} == {"one.txt": b"1", "two.txt": b"2"}
    assert sorted((tmp_path / "new").iterdir()) == sorted(written)


def test_link_is_no_file(tmp_path: Path) -> None:
    _, content = archive_of({}, link="one.txt")

    assert unpack_files([content], tmp_path, text_file) == []


def test_damaged_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServiceFailedError, match="the archive is damaged"):
        unpack_files([b"no archive" * 100], tmp_path, text_file)


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    _, content = archive_of({"one.txt": b"1"})

    with pytest.raises(ConfigError, match="folder cannot be written"):
        unpack_files([content], tmp_path / "file", text_file)
