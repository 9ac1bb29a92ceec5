from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from svc_manager.adapters.saved_folders import PIECE_BYTES, LocalSavedFolders, StagedExperiment

FOLDERS = LocalSavedFolders()


async def files_of(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async with aclosing(FOLDERS.files(folder)) as pieces:
        async for name, data, _ in pieces:
            found[name] = found.get(name, b"") + data
    return found


async def test_regular_files_are_given_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "trials" / "a").mkdir(parents=True)
    (tmp_path / "trials" / "a" / "stdout").write_bytes(b"o" * (2 * PIECE_BYTES + 1))
    (tmp_path / "trials" / "a" / "empty").touch()
    (tmp_path / "trials" / "b").symlink_to(tmp_path / "trials" / "a")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "environment.json").write_text("{}")
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "events.log").touch()

    found = await files_of(tmp_path)

    assert found == {
        "trials/a/empty": b"",
        "trials/a/stdout": b"o" * (2 * PIECE_BYTES + 1),
    }


async def test_a_folder_that_is_not_here_has_no_files(tmp_path: Path) -> None:
    assert await files_of(tmp_path / "gone") == {}


async def staged(root: Path, **files: bytes) -> StagedExperiment:
    stage = await FOLDERS.stage(root)
    for name, data in files.items():
        await stage.write(f"folder/{name}", data[:1], last=False)
        await stage.write(f"folder/{name}", data[1:], last=True)
    return stage


async def test_what_was_staged_is_placed_whole(tmp_path: Path) -> None:
    stage = await staged(tmp_path / "root", one=b"1234", two=b"5")

    await stage.place(tmp_path / "root" / "exp")
    await stage.discard()

    placed = tmp_path / "root" / "exp"
    assert (placed / "one").read_bytes() == b"1234"
    assert {path.name for path in placed.iterdir()} >= {"log", "trials", "db", "checkpoint"}
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["exp"]


async def test_what_was_discarded_leaves_nothing(tmp_path: Path) -> None:
    stage = await staged(tmp_path, one=b"1234")
    await stage.write("folder/open", b"x", last=False)

    await stage.discard()

    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_placed_over_what_is_there(tmp_path: Path) -> None:
    stage = await staged(tmp_path, one=b"1234")
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "mine").touch()

    with pytest.raises(FailedPreconditionError, match="remove it, or choose another folder"):
        await stage.place(tmp_path / "exp")

    await stage.discard()
    assert (tmp_path / "exp" / "mine").exists()


async def test_a_file_that_cannot_be_written_is_said_with_the_remedy(tmp_path: Path) -> None:
    stage = await staged(tmp_path, one=b"1234")

    with pytest.raises(ResourceExhaustedError, match="make room"):
        await stage.write("folder/one/below", b"x", last=True)

    await stage.discard()


async def test_a_root_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidArgumentError, match="experiment_working_directory"):
        await FOLDERS.stage(tmp_path / "file")


async def test_a_fetched_file_comes_in_pieces_and_is_forgotten(tmp_path: Path) -> None:
    fetched: list[Path] = []

    async def fetch(path: Path) -> None:
        fetched.append(path)
        path.write_bytes(b"x" * (PIECE_BYTES + 1))

    async with aclosing(FOLDERS.pieces(fetch)) as pieces:
        sizes = [(len(data), last) async for data, last in pieces]

    assert sizes == [(PIECE_BYTES, False), (1, True)]
    assert not fetched[0].parent.exists()
