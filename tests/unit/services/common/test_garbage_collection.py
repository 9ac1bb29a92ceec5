"""The collector's short freezer: what survives is set aside, and no cycle is kept for ever."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from svc_common.garbage_collection import GcFreezer


class Node:
    """Something that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def freezer() -> Iterator[GcFreezer]:
    gc.disable()  # nothing is collected but where a test says so
    freezer = GcFreezer()
    freezer.start()
    yield freezer
    freezer.stop()
    gc.enable()
    gc.collect()


@pytest.mark.usefixtures("freezer")
def test_what_survives_a_full_collection_is_looked_at_no_more() -> None:
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
def test_cycle_that_was_set_aside_is_freed_by_a_whole_pass() -> None:
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
def test_whole_passes_grow_rare() -> None:
    whole = []
    for number in range(40):
        gc.collect()
        if gc.get_freeze_count() == 0:  # the next one looks at everything
            whole.append(number)

    assert whole == [2, 7, 16, 33]


def test_nothing_is_left_aside_once_it_has_stopped() -> None:
    freezer = GcFreezer()
    freezer.start()

    freezer.stop()

    assert gc.get_freeze_count() == 0
    assert not any(getattr(one, "__self__", None) is freezer for one in gc.callbacks)
