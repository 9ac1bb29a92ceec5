"""Freezing of survivors of the garbage collector, without leaks of cycles.

Each test has a process of its own: a complete collection of one that has run other tests takes
seconds, and the state of the collector is that of its process.
"""

import subprocess
import sys

PRELUDE = """\
import gc, weakref
from svc_common.garbage_collection import GcFreezer

class Node:
    def __init__(self):
        self.itself = self

gc.disable()  # collections run only where a test starts them
freezer = GcFreezer()
freezer.start()
"""


def printed(program: str) -> list[str]:
    """Return the words that a program prints which has started a freezer."""
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + program], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()


def test_survivors_of_a_full_collection_are_frozen() -> None:
    program = """\
kept = [Node() for _ in range(10)]
gc.collect()
looked_at = {id(one) for one in gc.get_objects()}
print(any(id(one) in looked_at for one in kept))
"""
    assert printed(program) == ["False"]


def test_young_cycle_is_freed_at_once() -> None:
    program = """\
gone = weakref.ref(Node())
gc.collect()
print(gone())
"""
    assert printed(program) == ["None"]


def test_frozen_cycle_is_freed_by_a_complete_pass() -> None:
    program = """\
node = Node()
gone = weakref.ref(node)
gc.collect()
del node
gc.collect()
print(gone() is not None)
for _ in range(3):
    gc.collect()
print(gone())
"""
    assert printed(program) == ["True", "None"]


def test_interval_of_complete_passes_doubles() -> None:
    program = """\
for number in range(40):
    gc.collect()
    if gc.get_freeze_count() == 0:  # the next collection traverses everything
        print(number)
"""
    assert printed(program) == ["2", "7", "16", "33"]


def test_nothing_is_frozen_after_the_stop() -> None:
    program = """\
gc.collect()
print(gc.get_freeze_count() > 0)
freezer.stop()
print(gc.get_freeze_count())
print(any(getattr(one, "__self__", None) is freezer for one in gc.callbacks))
"""
    assert printed(program) == ["True", "0", "False"]
