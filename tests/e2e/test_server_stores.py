"""The same services with bytes in S3 and views in Redis, which may go away at any time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nni.errors import NniError
from nni.experiment import Experiment
from svc_common.storage.s3 import S3BlobStore
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_presences import RedisPresences
from svc_manager.adapters.redis_views import RedisViews
from tests.support import wait
from tests.support.local_shape import LocalShape, running_shape
from tests.support.stores import RedisServer, S3Server, redis_server, s3_server

LARGE_CHARACTERS = 300_000
"""Above what an event carries itself."""
TRIALS = 6
SLOTS = 2
TRIAL = """\
import os, time
import nni
assert not [name for name in os.environ if "S3" in name or "REDIS" in name]
size = len(nni.get_next_parameter()["x"])
while not os.path.exists("gate"):
    time.sleep(0.02)
nni.report_final_result(size)
"""
"""Ends when the file `gate` is in its folder."""


def experiment_of(shape: LocalShape, code: Path) -> Experiment:
    code.mkdir()
    (code / "trial.py").write_text(TRIAL, "utf-8")
    experiment = Experiment("local")
    config = experiment.config
    config.search_space = {
        "x": {"_type": "choice", "_value": [letter * LARGE_CHARACTERS for letter in "ab"]}
    }
    config.trial_command = "python3 trial.py"
    config.trial_code_directory = code
    config.trial_concurrency = SLOTS
    config.max_trial_number = TRIALS
    config.tuner.name = "Random"
    config.experiment_working_directory = shape.root
    return experiment


async def stored(s3: S3Server) -> list[str]:
    async with S3BlobStore(s3.settings("e2e/")) as store:
        return await store.keys("sha256/")


async def kept(redis: RedisServer, experiment_id: str) -> tuple[bool, list[str]]:
    async with RedisConnection(redis.url) as connection:
        views = await RedisViews(connection).get([experiment_id])
        return experiment_id in views, list(await RedisPresences(connection).all())


def variables_of(s3: S3Server) -> dict[str, str]:
    settings = s3.settings("e2e/")
    return {
        "NNI_S3_ENDPOINT": settings.endpoint,
        "NNI_S3_ACCESS_KEY": settings.access_key,
        "NNI_S3_SECRET_KEY": settings.secret_key,
        "NNI_S3_BUCKET": settings.bucket,
        "NNI_S3_PREFIX": settings.prefix,
    }


def open_gate(code: Path) -> None:
    (code / "gate").touch()


def running(experiment: Experiment) -> bool:
    return [job.status for job in experiment.list_trial_jobs()].count("RUNNING") == SLOTS


def answers(experiment: Experiment) -> Any:
    with contextlib.suppress(NniError):
        return experiment.get_status()
    return ""


@pytest.mark.timeout(240)
def test_experiment_runs_on_s3_and_redis_and_outlives_redis(
    shared_s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        redis_server(tmp_path / "redis") as redis,
        running_shape(tmp_path, NNI_REDIS_URL=redis.url, **variables_of(shared_s3)) as shape,
    ):
        monkeypatch.setenv("NNI_HOME", str(shape.home))
        experiment = experiment_of(shape, tmp_path / "code")
        experiment.start(shape.free_port())
        wait.until(lambda: asyncio.run(kept(redis, experiment.id))[1], 60, "presences are kept")
        wait.until(lambda: running(experiment), 60, "trials run")
        redis.kill()
        open_gate(tmp_path / "code")
        os.kill(shape.pids()["manager"], signal.SIGKILL)
        wait.until(lambda: answers(experiment) == "DONE", 60, "the end without Redis")
        results = experiment.export_data()
        redis.start()
        experiment.stop()

        view_kept = wait.until(
            lambda: asyncio.run(kept(redis, experiment.id))[0], 60, "the view is kept"
        )

        assert len(results) == TRIALS
        assert {result.value for result in results} == {LARGE_CHARACTERS}
        assert view_kept
        assert asyncio.run(stored(shared_s3)), "large values lie in the bucket"
        assert not (shape.home / "blobs").exists()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_what_needs_the_object_store_waits_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server(tmp_path / "s3") as s3, running_shape(tmp_path, **variables_of(s3)) as shape:
        monkeypatch.setenv("NNI_HOME", str(shape.home))
        experiment = experiment_of(shape, tmp_path / "code")
        experiment.start(shape.free_port())
        wait.until(lambda: running(experiment), 60, "trials run")
        s3.kill()
        open_gate(tmp_path / "code")
        logs = [shape.home / "log" / f"{name}.log" for name in ("dispatcher", "trial-runner")]
        wait.until(
            lambda: any("waiting for the blob store" in log.read_text() for log in logs),
            60,
            "a service that waits",
        )
        assert experiment.get_status() == "RUNNING"

        s3.start()
        wait.until(lambda: answers(experiment) == "DONE", 60, "the end")

        jobs = experiment.list_trial_jobs()
        experiment.stop()
    assert [job.status for job in jobs] == ["SUCCEEDED"] * TRIALS
