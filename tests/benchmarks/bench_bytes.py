"""What do travelling bytes and the collection of garbage cost?

Run: `python -m tests.benchmarks.bench_bytes`. A real S3 server, the manager's use cases and the
agent's way to them in this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from nni.experiment.code_archive import pack_code
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.s3 import S3BlobStore
from svc_manager.blobs.references import hashes_in
from svc_manager.domain.quota import Quota
from svc_manager.usecases.storage import BlobPolicy, build_blob_services
from svc_trial_runner.adapters.manager_blobs import ManagerBlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from tests.benchmarks.measure import print_figure, print_header
from tests.support.byte_service import byte_channel, no_experiment
from tests.support.stores import s3_server

REPEATS = 5
LARGE_BYTES = 100_000_000
SMALL_BYTES = 300_000
BLOBS = 100_000
EXPERIMENTS = 20
LOG_BYTES = 100_000_000
CODE_FILES = 1000
CODE_FILE_BYTES = 20_000


async def _travel(folder: Path) -> None:
    """Bytes of an agent by way of the manager, straight to a store with URLs."""
    speeds: list[float] = []
    latencies: list[float] = []
    with s3_server(folder / "s3") as server:
        async with (
            S3BlobStore(server.settings("bench/")) as store,
            InMemoryBus() as bus,
            byte_channel(bus, store) as channel,
        ):
            await store.put(b"the bucket exists")
            plain = ManagerBlobExchange(channel, ())
            exchange = plain.of_attempt(AttemptKey("bench", "t1", 1), checkpoints=True)
            for _ in range(REPEATS):
                path = folder / "checkpoint"
                path.write_bytes(os.urandom(LARGE_BYTES))
                begin = time.perf_counter()
                key = await exchange.put_file(path)
                await exchange.fetch(key, folder / "back")
                speeds.append(2 * LARGE_BYTES / 1e6 / (time.perf_counter() - begin))
            for _ in range(10 * REPEATS):
                path.write_bytes(os.urandom(SMALL_BYTES))
                begin = time.perf_counter()
                await exchange.put_file(path)
                latencies.append((time.perf_counter() - begin) * 1e3)
    print_figure(f"{LARGE_BYTES // 10**6} MB there and back, hashed", speeds, "MB/s")
    print_figure(f"{SMALL_BYTES // 1000} kB checkpoint stored", latencies, "ms")


async def _collect() -> None:
    """A sweep of many blobs, half of them named by logs."""
    clock = ManualClock()
    blobs = InMemoryBlobStore(clock)
    for number in range(BLOBS):
        await blobs.put(number.to_bytes(8, "big"))
    first: list[float] = []
    second: list[float] = []
    async with InMemoryBus() as bus:
        for experiment in range(EXPERIMENTS):
            numbers = range(experiment, BLOBS // 2, EXPERIMENTS)
            names = [hashlib.sha256(n.to_bytes(8, "big")).hexdigest() for n in numbers]
            payload = "".join(f"@{name}" for name in names).encode()
            await bus.events.append(
                f"e{experiment}", payload, expected_sequence=0, epoch=1, append_id="1"
            )
        clock.advance(10)
        rules = BlobPolicy(Quota(0, 0), timedelta(0), travel=True)
        for _ in range(REPEATS):
            keeping = build_blob_services(blobs, bus.events, clock, rules, list, no_experiment)
            for times in (first, second):
                begin = time.process_time()
                done = await keeping.collector.collect(dry_run=True)
                times.append(time.process_time() - begin)
                assert len(done.deleted) == BLOBS // 2
    print_figure(f"what of {BLOBS:,} blobs is garbage, first time", first, "s CPU")
    print_figure("the same again, logs known", second, "s CPU")


def _mark() -> None:
    payload = os.urandom(LOG_BYTES // 10)
    speeds = []
    for _ in range(REPEATS):
        begin = time.process_time()
        hashes_in(payload)
        speeds.append(len(payload) / 1e6 / (time.process_time() - begin))
    print_figure("log searched for hashes", speeds, "MB/s")


def _pack(folder: Path) -> None:
    code = folder / "code"
    code.mkdir()
    for number in range(CODE_FILES):
        (code / f"{number}.py").write_bytes(os.urandom(CODE_FILE_BYTES // 2).hex().encode())
    times = []
    for _ in range(REPEATS):
        with (folder / "code.tgz").open("wb") as output:
            begin = time.perf_counter()
            pack_code(code, output)
            times.append(time.perf_counter() - begin)
    size_mb = CODE_FILES * CODE_FILE_BYTES // 10**6
    print_figure(f"code of {CODE_FILES} files, {size_mb} MB, packed", times, "s")


def main() -> int:
    """Print the figures."""
    print_header(__doc__ or "", packages=["minio", "grpcio"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _mark()
        _pack(folder)
        asyncio.run(_collect())
        asyncio.run(_travel(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
