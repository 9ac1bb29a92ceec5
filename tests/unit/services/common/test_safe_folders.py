from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_common.beneath import (
    UnsafePathError,
    has_openat2,
    open_beneath,
    open_by_parts,
    plain_parts,
)
from svc_common.safe_folders import SafeFolder


@pytest.fixture(params=["openat2", "parts"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SafeFolder]:
    """Folder beside a secret; with `openat2`, and as on a kernel without it."""
    open_name = open_by_parts if request.param == "parts" else open_beneath
    if request.param == "openat2" and not has_openat2():
        pytest.skip("this kernel, or its container, has no openat2")
    (tmp_path / "secret").write_text("the manager's")
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    with SafeFolder.open(tmp_path / "root", open_name=open_name) as folder:
        yield folder


def place(root: SafeFolder) -> Path:
    return root.path


def names(root: SafeFolder) -> list[str]:
    return sorted(path.name for path in place(root).iterdir())


@pytest.mark.parametrize(
    "name", ["", "/", "/etc", "..", "a/..", "a/../..", ".", "a//b", "a/", "\0"]
)
def test_name_that_is_not_plain_is_refused(root: SafeFolder, name: str) -> None:
    with pytest.raises(UnsafePathError):
        plain_parts(name)
    for use in (root.read_file, root.append_file, root.create_file, root.folder, root.make_folder):
        with pytest.raises(UnsafePathError):
            use(name)
    with pytest.raises(UnsafePathError):
        root.replace_file(name, b"x")


def test_files_are_written_and_read(root: SafeFolder) -> None:
    with root.create_file("a/b/file") as file:
        file.write(b"one")
    with root.append_file("a/b/file") as end:
        end.write(b" two")
    root.replace_file("a/other", b"three", 0o600)

    with root.read_file("a/b/file") as read:
        assert read.read() == b"one two"
    assert (place(root) / "a" / "other").read_bytes() == b"three"
    assert (place(root) / "a" / "other").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "target", ["../secret", "/etc/passwd", "/proc/self/environ", "b", "../root/a"]
)
@pytest.mark.parametrize("name", ["a/link", "a/link/secret"])
def test_no_operation_follows_a_link(root: SafeFolder, target: str, name: str) -> None:
    secret = place(root).parent / "secret"
    link = place(root) / "a" / "link"
    if "/secret" in name:
        target = target.rpartition("/")[0] or "b"
        (place(root) / "a" / "b" / "secret").write_text("beside")
    link.symlink_to(target)

    for use in (root.read_file, root.append_file, root.folder, root.make_folder):
        with pytest.raises((UnsafePathError, NotADirectoryError)):
            use(name)
    with pytest.raises((FileExistsError, UnsafePathError)):
        root.create_file(name)
    assert not root.is_file(name)
    assert not root.is_folder(name)
    assert secret.read_text() == "the manager's"


def test_replacing_a_link_leaves_its_target(root: SafeFolder) -> None:
    (place(root) / "environment.json").symlink_to("../secret")

    root.replace_file("environment.json", b"{}", 0o600)

    assert (place(root).parent / "secret").read_text() == "the manager's"
    assert (place(root) / "environment.json").read_text() == "{}"
    assert not (place(root) / "environment.json").is_symlink()


def test_pipe_is_a_missing_file_and_does_not_block(root: SafeFolder) -> None:
    os.mkfifo(place(root) / "pipe")

    with pytest.raises(FileNotFoundError):
        root.read_file("pipe")
    with pytest.raises(OSError, match="pipe"):
        root.append_file("pipe")


def test_folder_that_was_renamed_stays_the_same_one(root: SafeFolder) -> None:
    with root.folder("a") as opened:
        (place(root) / "a").rename(place(root) / "moved")
        (place(root) / "a").symlink_to("..")
        opened.replace_file("file", b"x")

    assert (place(root) / "moved" / "file").exists()
    assert not (place(root).parent / "file").exists()


def test_appended_bytes_are_at_the_end(root: SafeFolder) -> None:
    for _ in range(2):
        with root.append_file("log") as file:
            file.write(b"line\n")

    assert (place(root) / "log").read_text() == "line\nline\n"


def test_nothing_is_appended_behind_a_link(root: SafeFolder) -> None:
    (place(root) / "log").symlink_to(place(root).parent / "secret")

    with pytest.raises(OSError, match="symbolic"):
        root.append_file("log")

    assert (place(root).parent / "secret").read_text() == "the manager's"


def test_walk_names_links_but_not_what_is_behind_them(root: SafeFolder) -> None:
    (place(root) / "a" / "b" / "file").touch()
    (place(root) / "a" / "link").symlink_to("..")

    assert [name for name, _ in root.walk()] == ["a", "a/b", "a/link", "a/b/file"]


def test_walk_leaves_out_what_lies_too_deep(root: SafeFolder) -> None:
    with root.make_folder("a/b/c") as folder, folder.create_file("file"):
        pass
    with root.create_file("a/b/file"):
        pass

    assert [name for name, _ in root.walk(depth_limit=2)] == ["a", "a/b", "a/b/c", "a/b/file"]
    assert [name for name, _ in root.walk(depth_limit=3)][-1] == "a/b/c/file"


def test_walk_leaves_out_names(root: SafeFolder) -> None:
    (place(root) / "file").touch()

    assert [name for name, _ in root.walk(frozenset({"a"}))] == ["file"]


def test_removal_deletes_links_and_not_their_targets(root: SafeFolder) -> None:
    outside = place(root).parent / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (place(root) / "a" / "b" / "link").symlink_to(outside)
    (place(root) / "a" / "b" / "up").symlink_to("..")

    root.remove("a")
    root.remove("a")

    assert names(root) == []
    assert (outside / "kept").exists()


def test_removal_through_a_link_deletes_nothing(root: SafeFolder) -> None:
    (place(root) / "link").symlink_to("..")

    root.remove("link/secret")

    assert (place(root).parent / "secret").exists()


def test_tree_deeper_than_the_limits_of_python_and_paths_is_removed(root: SafeFolder) -> None:
    current = os.open(place(root), os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=current)
        below = os.open("deep", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)

    root.remove("deep")

    assert names(root) == ["a"]


def test_folders_without_rights_are_removed(root: SafeFolder) -> None:
    (place(root) / "a" / "b" / "file").touch()
    (place(root) / "a" / "b").chmod(0)
    (place(root) / "a").chmod(0o500)

    root.remove("a")

    assert names(root) == []


def test_entry_moves_between_folders(root: SafeFolder) -> None:
    (place(root) / "a" / "b" / "file").touch()
    root.make_folder("new/deep").close()

    with root.folder("new") as target:
        root.rename("a/b", target, "deep")

    assert (place(root) / "new" / "deep" / "file").exists()


def test_nothing_moves_through_a_link(root: SafeFolder) -> None:
    (place(root) / "link").symlink_to("..")

    with pytest.raises(OSError, match="link"):
        root.rename("a/b", root, "link/b")
