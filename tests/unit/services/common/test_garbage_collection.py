"""Freezing of survivors of the garbage collector, without leaks of cycles."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from svc_common.garbage_collection import GcFreezer


class Node:
    """Object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def freezer() -> Iterator[GcFreezer]:
    gc.disable()  # collections run only where a test starts them
    freezer = GcFreezer()
    freezer.start()
    yield freezer
    freezer.stop()
    gc.enable()
    gc.collect()


@pytest.mark.usefixtures("freezer")
def test_survivors_of_a_full_collection_are_frozen() -> None:
    kept = [Node() for _ in range(10)]
    gc.collect()

    looked_at = {id(one) for one in gc.get_objects()}

    assert not any(id(one) in looked_at for one in kept)


@pytest.mark.usefixtures("freezer")
def test_young_cycle_is_freed_at_once() -> None:
    gone = weakref.ref(Node())

    gc.collect()

    assert gone() is None


@pytest.mark.usefixtures("freezer")
def test_frozen_cycle_is_freed_by_a_complete_pass() -> None:
    node = Node()
    gone = weakref.ref(node)
    gc.collect()
    del node

    gc.collect()
    still_there = gone() is not None
    for _ in range(3):
        gc.collect()

    assert still_there
    assert gone() is None


@pytest.mark.usefixtures("freezer")
def test_interval_of_complete_passes_doubles() -> None:
    whole = []
    for number in range(40):
        gc.collect()
        if gc.get_freeze_count() == 0:  # the next collection traverses everything
            whole.append(number)

    assert whole == [2, 7, 16, 33]


def test_nothing_is_frozen_after_the_stop() -> None:
    freezer = GcFreezer()
    freezer.start()

    freezer.stop()

    assert gc.get_freeze_count() == 0
    assert not any(getattr(one, "__self__", None) is freezer for one in gc.callbacks)
