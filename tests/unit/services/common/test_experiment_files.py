import os
from pathlib import Path

import pytest

from svc_common.experiment_files import ExperimentRoots, open_inside


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


def test_folder_below_a_root_is_opened(root: Path, tmp_path: Path) -> None:
    (root / "stdout").write_text("hello")

    with ExperimentRoots([tmp_path]).open(root) as folder, folder.read_file("stdout") as file:
        assert file.read() == b"hello"


def test_root_may_be_named_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    roots = ExperimentRoots([tmp_path / "link"])

    for directory in (root, tmp_path / "link" / "experiment"):
        with roots.open(directory) as folder:
            assert folder.is_folder("trials")


@pytest.mark.parametrize(
    "name", ["link", "link/trials", "experiment/../experiment", "experiment/up"]
)
def test_link_below_a_root_is_a_missing_folder(root: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(root)
    (root / "up").symlink_to("..")
    directory = Path(f"{tmp_path}/{name}")
    roots = ExperimentRoots([tmp_path])

    with pytest.raises(FileNotFoundError):
        roots.open(directory)
    with pytest.raises(FileNotFoundError):
        roots.make(directory / "new")


def test_folder_elsewhere_is_opened_but_must_be_no_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    roots = ExperimentRoots([tmp_path / "other"])

    with roots.open(root) as folder:
        assert folder.is_folder("trials")
    with pytest.raises(OSError, match="link"):
        roots.open(tmp_path / "link")


def test_missing_folder_is_made_with_those_above(tmp_path: Path) -> None:
    roots = ExperimentRoots([tmp_path / "root"])

    roots.make(tmp_path / "root" / "a" / "b").close()

    assert (tmp_path / "root" / "a" / "b").is_dir()
