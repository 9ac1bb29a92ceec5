"""Merging of the copies of a log, of which each may have lost records."""

import pytest

from svc_manager.event_log.merging import Records, experiment_in, merged, readable_start
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab
from tests.unit.services.manager.event_log.test_reader import batches_of

WHOLE = [(3, b"a"), (5, b"b"), (6, b"c"), (9, b"d")]


@pytest.mark.parametrize(
    ("log", "file"),
    [
        (WHOLE, WHOLE),
        (WHOLE, WHOLE[:2]),
        (WHOLE[:2], WHOLE),
        ([WHOLE[0], *WHOLE[2:]], WHOLE[:3]),
        (WHOLE[:3], [*WHOLE[:1], *WHOLE[2:]]),
        ([], WHOLE),
        (WHOLE, []),
        (WHOLE, [*WHOLE[:2], (700, b"c")]),
        (WHOLE[:2], WHOLE[2:]),
    ],
    ids=[
        "equal",
        "file cut",
        "log cut",
        "log holed",
        "both holed",
        "log gone",
        "file gone",
        "sequence damaged",
        "nothing in common",
    ],
)
def test_records_of_either_copy_are_in_the_merged_log(log: Records, file: Records) -> None:
    assert merged(log, file) == WHOLE


@pytest.mark.parametrize(("kept", "winner"), [(2, "file"), (4, "log")])
def test_copies_with_other_positions_are_not_merged(kept: int, winner: str) -> None:
    moved = [(sequence + 2, b"moved " + payload) for sequence, payload in WHOLE]

    found = merged(WHOLE[:kept], moved)

    assert found == {"file": moved, "log": WHOLE[:kept]}[winner]


def test_two_starts_of_a_log_are_two_numberings() -> None:
    records = batches_of(Lab())
    moved = [(sequence + 1_000, payload) for sequence, payload in records]

    assert merged(records[:2], moved) == moved


def test_records_before_a_hole_that_cannot_be_folded_are_its_readable_start() -> None:
    lab = Lab()
    lab.finish(lab.running())
    records = batches_of(lab)
    broken = [*records[:3], (records[3][0], b"\xff"), *records[4:]]

    assert readable_start(records) == records
    assert readable_start(broken) == records[:3]


def test_first_event_names_the_experiment() -> None:
    records = batches_of(Lab())

    assert experiment_in(records) == EXPERIMENT_ID
    assert experiment_in(records[1:]) == ""
    assert experiment_in([(1, b"\xff")]) == ""
    assert experiment_in([]) == ""
