"""Fixtures and set-up of all tests."""

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.local_shape import local_shape
from tests.support.servers import NatsServer, nats_server
from tests.support.stores import RedisServer, S3Server, redis_server, s3_server

__all__ = ["local_shape"]  # a fixture for all


LONGEST: Final = ("test_outages.py", "test_wheels.py", "test_fencing.py", "test_examples.py")
"""Files of tests that wait for processes for a minute or more; they cost little of a processor."""


def pytest_configure() -> None:
    """Set what the caller's shell and the accounts of the machine would decide otherwise."""
    os.environ["NNI_PRIVATE"] = "no"
    # Workers share the processors: threads of one library that wait for each other slow them all.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Background jobs of a shell ignore SIGINT, as do their children.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files that take longest first: a late one would keep one worker busy alone."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.path.name in LONGEST:
        return LONGEST.index(item.path.name)
    return len(LONGEST) + (item.path.parent.name != "e2e")


def pytest_collection_finish() -> None:
    """Keep tests and modules out of garbage collections, which would stop a test for seconds."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed the generators of the process: what a test draws must not depend on those before it."""
    random.seed(0)
    # A test that needs one of them has imported its module.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a home folder for every test, apart from the user's experiments and services."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NNI_HOME", str(home / "nni"))
    for name in ("NNI_PLATFORM", "NNI_EXP_ID", "NNI_SYS_DIR", "NNI_TRIAL_JOB_ID", "NNI_READY_FD"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(scope="session")
def shared_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """Bus shared by tests that leave it running; each test uses ids of its own."""
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[NatsServer]:
    """Bus that the test may kill."""
    with nats_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Redis shared by tests that leave it running; each test uses ids of its own."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def shared_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """S3 server shared by tests that leave it running; each test uses a prefix of its own."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server
