import asyncio
import hashlib
import json
import stat
import threading
from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.adapters.experiment_folders import LocalFolders


async def test_a_folder_is_created_with_its_parts_and_a_private_environment(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "root" / "abcd1234"

    digest = await LocalFolders().create(directory, {"A": "b"}, "python3")

    path = directory / "environment.json"
    assert sorted(one.name for one in directory.iterdir() if one.is_dir()) == [
        "checkpoint",
        "db",
        "log",
        "trials",
    ]
    assert json.loads(path.read_text()) == {"environment": {"A": "b"}, "interpreter": "python3"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()


async def test_a_second_creation_replaces_the_environment_only(tmp_path: Path) -> None:
    await LocalFolders().create(tmp_path, {"A": "b"}, "python3")
    (tmp_path / "db" / "events.log").write_text("log")

    await LocalFolders().create(tmp_path, {"A": "c"}, "python3")

    assert (tmp_path / "db" / "events.log").read_text() == "log"
    assert json.loads((tmp_path / "environment.json").read_text())["environment"] == {"A": "c"}


async def test_a_folder_below_a_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidArgumentError, match="choose another folder"):
        await LocalFolders().create(tmp_path / "file" / "abcd1234", {}, "")


async def test_removing_a_missing_folder_does_nothing(tmp_path: Path) -> None:
    await LocalFolders().remove(tmp_path / "missing")

    assert tmp_path.is_dir()


def _trials_in(directory: Path, count: int) -> Path:
    for number in range(count):
        inner = directory / "trials" / f"t{number:03}" / ".nni"
        inner.mkdir(parents=True)
        (inner / "state").write_text("running")
    return directory


async def test_disposal_removes_all_trials_and_reports_each_of_them(tmp_path: Path) -> None:
    directory = _trials_in(tmp_path / "gone", 50)
    remaining: list[int] = []

    await LocalFolders().dispose(directory, remaining.append)

    assert not directory.exists()
    assert sorted(remaining) == list(range(1, 51))


async def test_cancelled_disposal_leaves_trials_that_the_next_one_removes(tmp_path: Path) -> None:
    directory = _trials_in(tmp_path / "gone", 50)
    reached, cancelled = threading.Event(), threading.Event()

    def hold(_remaining: int) -> None:
        reached.set()
        cancelled.wait(60)

    disposal = asyncio.create_task(LocalFolders().dispose(directory, hold))
    await asyncio.to_thread(reached.wait, 60)
    disposal.cancel()
    with pytest.raises(asyncio.CancelledError):
        await disposal
    cancelled.set()
    async with asyncio.timeout(60):
        while any(thread.name.startswith("nni-remove") for thread in threading.enumerate()):
            await asyncio.to_thread(lambda: None)

    left = len(list((directory / "trials").iterdir()))
    assert 50 - 2 <= left < 50
    await LocalFolders().dispose(directory, lambda _remaining: None)
    assert not directory.exists()
