"""An installation whose manager is in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.in_memory_manager import InMemoryManager, in_memory_manager


@pytest.fixture
def manager(private_home: Path) -> Iterator[InMemoryManager]:
    with in_memory_manager(private_home / "nni") as served:
        yield served
