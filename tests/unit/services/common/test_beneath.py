from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_common.beneath import (
    FOLDER,
    OpenBeneath,
    UnsafePathError,
    has_openat2,
    open_beneath,
    open_by_parts,
    plain_parts,
)


@pytest.fixture(params=["openat2", "parts"])
def open_name(request: pytest.FixtureRequest) -> OpenBeneath:
    if request.param == "parts":
        return open_by_parts
    if not has_openat2():
        pytest.skip("this kernel, or its container, has no openat2")
    return open_beneath


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").touch()
    descriptor = os.open(tmp_path, FOLDER)
    yield descriptor
    os.close(descriptor)


def test_parts_of_a_plain_name() -> None:
    assert plain_parts("a/b..c/.d") == ["a", "b..c", ".d"]


def test_file_is_opened(open_name: OpenBeneath, root: int) -> None:
    descriptor = open_name(root, ["a", "file"], os.O_RDONLY)

    assert os.fstat(descriptor).st_size == 0
    os.close(descriptor)


@pytest.mark.parametrize("parts", [["link"], ["link", "file"], ["a", "up", "a", "file"]])
def test_link_anywhere_is_refused(
    open_name: OpenBeneath, root: int, tmp_path: Path, parts: list[str]
) -> None:
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a" / "up").symlink_to("..")

    with pytest.raises(UnsafePathError, match="link"):
        open_name(root, parts, os.O_RDONLY)


def test_missing_file_is_not_found(open_name: OpenBeneath, root: int) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        open_name(root, ["a", "missing"], os.O_RDONLY)

    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, "a/missing")
    assert not isinstance(raised.value, UnsafePathError)


def test_no_descriptor_is_left_open(open_name: OpenBeneath, root: int, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("a")
    before = set(Path("/proc/self/fd").iterdir())

    for parts in (["link", "file"], ["a", "missing"], ["missing", "file"], ["a", "file", "x"]):
        with pytest.raises(OSError, match=r"file|missing"):
            open_name(root, parts, os.O_RDONLY)

    # A garbage collection may close those of earlier tests meanwhile.
    assert set(Path("/proc/self/fd").iterdir()) <= before
