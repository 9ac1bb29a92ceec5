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
"""Files of `tests/e2e` that wait for a minute or more; they cost little of a processor."""
_BY_END: Final = 0.75
"""Fraction of the files that compute with which those of `tests/e2e` are mixed: none is last."""


def pytest_configure() -> None:
    """Set what the caller's shell and the accounts of the machine would decide otherwise."""
    os.environ["NNI_PRIVATE"] = "no"
    # Workers share the processors: threads of one library that wait for each other slow them all.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Background jobs of a shell ignore SIGINT, as do their children.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class FailureLines:
    """Names each failed test when it ends: a run that is ended early keeps no other trace of it."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a line for a failure."""
        if report.failed:
            self._reporter.write_line(f"\nfailed in {report.when}: {report.nodeid}")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have failures named as they come, by the process that writes to the terminal."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(FailureLines(reporter))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files that take longest first, and mix others that wait with those that compute.

    A late long file would keep one worker busy alone; all files of `tests/e2e` at once, which wait
    for processes, would leave processors idle, and all others at once would have too few.
    """
    files = dict.fromkeys(item.path for item in items)
    waiting = [file for file in files if file.parent.name == "e2e"]
    computing = [file for file in files if file.parent.name != "e2e"]
    turns = {file: _BY_END * i / len(waiting) for i, file in enumerate(waiting)}
    turns |= {file: i / len(computing) for i, file in enumerate(computing)}
    turns |= {file: LONGEST.index(file.name) - 10.0 for file in waiting if file.name in LONGEST}
    items.sort(key=lambda item: turns[item.path])


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
        torch = sys.modules["torch"]
        torch.default_generator.manual_seed(0)
        # `torch.manual_seed` notes its stack for each kind of device, even where none is there.
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(0)


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
