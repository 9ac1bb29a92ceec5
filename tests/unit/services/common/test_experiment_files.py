import os
from pathlib import Path

import pytest

from svc_common.experiment_files import append_to, open_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "experiment"
    (folder / "trials" / "abcde").mkdir(parents=True)
    (tmp_path / "secret").write_text("the manager's")
    return folder


def test_file_is_read(root: Path) -> None:
    (root / "trials" / "abcde" / "stdout").write_text("hello")

    with open_inside(root, root / "trials" / "abcde" / "stdout") as file:
        assert file.read() == b"hello"


def test_hard_link_is_a_file(root: Path) -> None:
    (root / "stdout").write_text("hello")
    os.link(root / "stdout", root / "trial.log")

    with open_inside(root, root / "trial.log") as file:
        assert file.read() == b"hello"


def test_folder_may_be_named_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (root / "stdout").write_text("hello")

    with open_inside(tmp_path / "link", tmp_path / "link" / "stdout") as file:
        assert file.read() == b"hello"


@pytest.mark.parametrize("target", ["../../../secret", "/proc/self/environ", "/dev/zero"])
def test_link_out_of_the_folder_is_a_missing_file(root: Path, target: str) -> None:
    path = root / "trials" / "abcde" / "stdout"
    path.symlink_to(target)

    with pytest.raises(FileNotFoundError):
        open_inside(root, path)


def test_file_behind_a_linked_folder_is_missing(root: Path, tmp_path: Path) -> None:
    (root / "trials" / "abcde").rmdir()
    (root / "trials" / "abcde").symlink_to(tmp_path)

    with pytest.raises(FileNotFoundError):
        open_inside(root, root / "trials" / "abcde" / "secret")


def test_pipe_is_a_missing_file_and_does_not_block(root: Path) -> None:
    os.mkfifo(root / "stdout")

    with pytest.raises(FileNotFoundError):
        open_inside(root, root / "stdout")


def test_missing_file_is_not_found(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_inside(root, root / "stdout")


def test_appended_bytes_are_at_the_end(root: Path) -> None:
    for _ in range(2):
        with append_to(root / "log") as file:
            file.write(b"line\n")

    assert (root / "log").read_text() == "line\nline\n"


def test_nothing_is_appended_behind_a_link(root: Path, tmp_path: Path) -> None:
    (root / "log").symlink_to(tmp_path / "secret")

    with pytest.raises(OSError, match="symbolic"):
        append_to(root / "log")

    assert (tmp_path / "secret").read_text() == "the manager's"
