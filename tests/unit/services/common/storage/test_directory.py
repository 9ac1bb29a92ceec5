from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.ports import REFRESH_AFTER


async def test_storing_old_content_again_resets_its_age(tmp_path: Path) -> None:
    store = DirectoryBlobStore(tmp_path)
    key = await store.put(b"content")
    old_s = time.time() - 10 * REFRESH_AFTER.total_seconds()
    os.utime(tmp_path / key, (old_s, old_s))

    await store.put(b"content")

    assert datetime.now(UTC) - (await store.info(key)).stored_at < timedelta(minutes=1)


async def test_storing_an_old_file_again_resets_its_age(tmp_path: Path) -> None:
    store = DirectoryBlobStore(tmp_path / "blobs")
    (tmp_path / "file").write_bytes(b"content")
    key = await store.put_file(tmp_path / "file")
    os.utime(tmp_path / "blobs" / key, (0, 0))

    await store.put_file(tmp_path / "file")

    assert datetime.now(UTC) - (await store.info(key)).stored_at < timedelta(minutes=1)
