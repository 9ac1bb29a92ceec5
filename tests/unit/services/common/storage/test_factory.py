import subprocess
import sys
from pathlib import Path

import pytest

from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.factory import open_blob_store
from svc_common.storage.retries import RetryingBlobStore
from svc_common.storage.s3 import S3BlobStore
from svc_common.storage.s3_settings import S3Settings


async def test_store_is_a_folder_unless_a_server_is_named(tmp_path: Path) -> None:
    async with open_blob_store(tmp_path, None) as local:
        await local.put_named("k/1", b"x")
    settings = S3Settings("http://127.0.0.1:1", "account", "hush")
    async with open_blob_store(tmp_path, settings) as remote:
        pass

    assert isinstance(local, DirectoryBlobStore)
    assert (tmp_path / "blobs" / "k" / "1").read_bytes() == b"x"
    assert isinstance(remote, S3BlobStore)


async def test_background_work_retries_a_server_but_not_a_folder(tmp_path: Path) -> None:
    settings = S3Settings("http://127.0.0.1:1", "account", "hush")
    async with open_blob_store(tmp_path, settings, waits=True) as remote:
        pass
    async with open_blob_store(tmp_path, None, waits=True) as local:
        pass

    assert isinstance(remote, RetryingBlobStore)
    assert isinstance(local, DirectoryBlobStore), "a folder that is refused does not come back"


@pytest.mark.parametrize("service", ["svc_manager", "svc_dispatcher", "svc_trial_runner"])
def test_local_shape_loads_no_driver_of_a_server(service: str) -> None:
    script = (
        f"import sys, {service}.app\n"
        "print(*{'minio', 'redis', 'urllib3', 'tenacity'} & sys.modules.keys())"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert loaded.stdout.split() == []
