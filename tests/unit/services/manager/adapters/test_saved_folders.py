from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import event_pb2
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from svc_common.experiment_files import ExperimentRoots
from svc_manager.adapters.event_file import EVENT_FILE, EventFile
from svc_manager.adapters.saved_folders import PIECE_BYTES, LocalSavedFolders, StagedExperiment

FOLDERS = LocalSavedFolders()
EXPERIMENT = "exp00001"


def write_log(folder: Path, experiment_id: str = EXPERIMENT) -> None:
    """Write the log of an experiment into its folder."""
    (folder / "db").mkdir(parents=True)
    created = event_pb2.ExperimentCreated(experiment_id=experiment_id)
    batch = event_pb2.EventBatch(events=[event_pb2.Event(experiment_created=created)])
    file = EventFile(folder / EVENT_FILE)
    file.append(1, batch.SerializeToString())
    file.close()


async def files_of(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async with aclosing(FOLDERS.files(folder, EXPERIMENT)) as pieces:
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
    write_log(tmp_path)

    found = await files_of(tmp_path)

    assert found == {
        "trials/a/empty": b"",
        "trials/a/stdout": b"o" * (2 * PIECE_BYTES + 1),
    }


@pytest.mark.parametrize("owner", ["other123", None])
async def test_folder_without_the_log_of_this_experiment_has_no_files(
    tmp_path: Path, owner: str | None
) -> None:
    if owner:
        write_log(tmp_path, owner)
    (tmp_path / "tls.key").write_text("secret")

    assert await files_of(tmp_path) == {}


async def test_nothing_is_staged_or_placed_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to("../outside")
    folders = LocalSavedFolders(ExperimentRoots([tmp_path / "root"]))

    with pytest.raises(InvalidArgumentError, match="experiment_working_directory"):
        await folders.stage(tmp_path / "root" / "link")
    stage = await folders.stage(tmp_path / "root")
    with pytest.raises(FailedPreconditionError, match="symbolic link"):
        await stage.place(tmp_path / "root" / "link" / "exp")
    await stage.discard()

    assert list((tmp_path / "outside").iterdir()) == []


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
