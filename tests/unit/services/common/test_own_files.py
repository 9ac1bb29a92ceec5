import errno
import os
from pathlib import Path

import pytest

from svc_common.own_files import (
    DAMAGED,
    place_for_file,
    place_for_log,
    private_folder,
    read_or_set_aside,
    set_aside,
)
from tests.support.unreadable_files import make_unreadable


def aside(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if DAMAGED in path.name]


def test_folder_is_created_for_this_user_only(tmp_path: Path) -> None:
    private_folder(tmp_path / "a")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_open_folder_is_closed_to_others_and_its_content_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a" / "file").touch()

    private_folder(tmp_path / "a")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "file").exists()


def test_file_in_place_of_a_folder_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("content")

    private_folder(tmp_path / "log")

    assert (tmp_path / "log").is_dir()
    assert [path.read_text() for path in aside(tmp_path)] == ["content"]


@pytest.mark.parametrize("kind", ["folder", "broken link", "link to itself", "pipe"])
def test_what_is_no_file_is_set_aside(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nothing" if kind == "broken link" else path)

    place_for_file(path)

    assert not path.is_symlink()
    assert not path.exists()
    assert len(aside(tmp_path)) == 1


def test_regular_file_and_free_place_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")

    place_for_file(tmp_path / "file")
    place_for_file(tmp_path / "missing")

    assert [path.read_text() for path in tmp_path.iterdir()] == ["content"]


@pytest.mark.parametrize("kept", [True, False])
def test_log_of_another_user_is_set_aside_and_an_own_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    path = tmp_path / "log"
    path.write_text("content")
    open_file = os.open

    def refuse(asked: Path, flags: int, mode: int = 0o777) -> int:
        if asked == path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open_file(asked, flags, mode)

    if not kept:
        monkeypatch.setattr(os, "open", refuse)

    place_for_log(path)

    assert path.exists() is kept
    assert len(aside(tmp_path)) == (0 if kept else 1)


def test_missing_log_is_no_error(tmp_path: Path) -> None:
    place_for_log(tmp_path / "log")

    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_be_renamed_raises_nothing(tmp_path: Path) -> None:
    set_aside(tmp_path / "missing" / "file", "it is damaged")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o044])
def test_closed_file_is_opened_to_its_owner_and_stays_the_same(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("content")
    inode = path.stat().st_ino
    path.chmod(mode)

    place_for_file(path)

    assert path.read_text() == "content"
    assert path.stat().st_mode & 0o777 == mode | 0o600
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_file_that_cannot_be_read_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (tmp_path / "file").write_text("content")
    make_unreadable(monkeypatch, tmp_path / "file", number)

    assert read_or_set_aside(tmp_path / "file") is None
    assert [path.read_text() for path in aside(tmp_path)] == ["content"]


def test_fault_outside_of_a_file_leaves_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("content")
    make_unreadable(monkeypatch, tmp_path / "file", errno.EMFILE)

    with pytest.raises(OSError, match="Too many open files"):
        read_or_set_aside(tmp_path / "file")

    assert aside(tmp_path) == []


def test_content_is_read_and_a_missing_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")

    assert read_or_set_aside(tmp_path / "file") == b"content"
    assert read_or_set_aside(tmp_path / "missing") is None
