"""Remarks and the rules that they keep."""

from typing import Any

import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_manager.domain import events, inputs
from svc_manager.domain.effects import WriteSummary
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.fold import fold
from svc_manager.domain.remarks import NOTE_LIMIT, TAG_LIMIT, TAGS_LIMIT, Remarks
from tests.unit.services.manager.building import Lab, kinds


def test_only_given_values_change_and_tags_are_stripped_and_unique() -> None:
    old = Remarks("a note", ("one",), starred=True)

    assert old.changed(tags=[" two ", "one", "two"]) == Remarks("a note", ("two", "one"), True)
    assert old.changed(note=" ", starred=False) == Remarks("", ("one",))


@pytest.mark.parametrize(
    "change",
    [
        {"note": "n" * (NOTE_LIMIT + 1)},
        {"note": "a\0b"},
        {"note": "a\ud800"},
        {"note": "\udfff end"},
        {"tags": [str(number) for number in range(TAGS_LIMIT + 1)]},
        {"tags": ["t" * (TAG_LIMIT + 1)]},
        {"tags": [""]},
        {"tags": ["a,b"]},
        {"tags": ["a\nb"]},
        {"tags": ["a\ud800"]},
    ],
)
def test_values_beyond_a_rule_are_refused(change: dict[str, Any]) -> None:
    [field] = change

    with pytest.raises(InvalidArgumentError) as refusal:
        Remarks().changed(**change)

    assert refusal.value.field == field


def test_note_and_tags_of_the_largest_sizes_are_kept() -> None:
    tags = [f"{number:02d}" + "t" * 48 for number in range(20)]

    kept = Remarks().changed(note="n" * 4_000, tags=tags)

    assert kept == Remarks("n" * 4_000, tuple(tags))
    assert (NOTE_LIMIT, TAGS_LIMIT, TAG_LIMIT) == (4_000, 20, 50)


def test_remarks_on_experiment_and_trial_are_apart_and_empty_ones_are_dropped() -> None:
    lab = Lab()
    trial = lab.waiting().id

    lab.command(inputs.ChangeRemarks(note="whole"))
    effects = lab.effects
    emitted = lab.command(inputs.ChangeRemarks(trial, tags=("a",), starred=True))
    unchanged = lab.command(inputs.ChangeRemarks(trial, starred=True))

    assert lab.experiment.remarks == {"": Remarks("whole"), trial: Remarks("", ("a",), True)}
    assert kinds(emitted) == [events.RemarksChanged]
    assert unchanged == []
    assert effects == [WriteSummary()]
    fold(lab.experiment, events.RemarksChanged("", "", (), False), 1)
    assert "" not in lab.experiment.remarks


def test_stopped_experiments_take_remarks_and_viewed_ones_and_unknown_trials_do_not() -> None:
    lab = Lab()

    with pytest.raises(NotFoundError):
        lab.command(inputs.ChangeRemarks("nobod", note="x"))
    lab.experiment.state = ExperimentState.STOPPED
    assert lab.command(inputs.ChangeRemarks(note="late"))
    lab.experiment.state = ExperimentState.VIEWED
    with pytest.raises(FailedPreconditionError, match="reading only"):
        lab.command(inputs.ChangeRemarks(note="later"))
