"""SIGHUP as a terminal's shell leaves it to programs."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def hang_up_is_not_ignored() -> Iterator[None]:
    """Let SIGHUP end a process in the tests of a module, also in a run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
