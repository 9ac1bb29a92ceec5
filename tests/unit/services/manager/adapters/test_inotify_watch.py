import asyncio
from pathlib import Path

import pytest

from svc_common.errors import NotFoundError
from svc_manager.adapters.inotify_watch import InotifyWatches


async def test_a_watch_tells_that_a_file_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()

    async with InotifyWatches().watch(path) as watch, asyncio.timeout(10) as limit:
        with path.open("a") as file:
            file.write("x")
        await watch.changed()

    assert not limit.expired()


async def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        async with InotifyWatches().watch(tmp_path / "nothing"):
            pass
