from collections.abc import Iterator
from dataclasses import replace

import pytest

from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_manager.domain.experiment import Budget
from svc_manager.domain.trial import Trial
from svc_manager.pagination import page_after
from svc_manager.usecases.trials import SequenceIndex, TrialFilter, page_by_sequence, rank
from tests.unit.services.manager.building import Lab


@pytest.fixture
def lab() -> Lab:
    """Trials with results 3, NaN, 1, 2, then one that runs."""
    made = Lab(Budget(trial_concurrency=1))
    for value in (3.0, float("nan"), 1.0, 2.0):
        trial = made.running()
        made.now_ms += 10
        made.finish(trial, value)
    made.running()
    return made


def sequences(lab: Lab, wanted: TrialFilter) -> list[int]:
    return [trial.sequence_id for _, trial in rank(lab.experiment, wanted, lab.now_ms)]


def test_without_a_wish_trials_come_in_order_of_creation(lab: Lab) -> None:
    assert sequences(lab, TrialFilter()) == [0, 1, 2, 3, 4]
    assert sequences(lab, TrialFilter(descending=True)) == [4, 3, 2, 1, 0]


@pytest.mark.claim("platform", 46)
def test_by_metric_trials_without_a_number_come_last_either_way(lab: Lab) -> None:
    order = trial_service_pb2.TRIAL_ORDER_METRIC

    assert sequences(lab, TrialFilter(order=order)) == [2, 3, 0, 1, 4]
    assert sequences(lab, TrialFilter(order=order, descending=True)) == [0, 3, 2, 1, 4]


def test_states_prefix_and_results_narrow_the_list(lab: Lab) -> None:
    running = TrialFilter(states=[trial_pb2.TRIAL_STATE_RUNNING])

    assert sequences(lab, running) == [4]
    assert sequences(lab, TrialFilter(id_prefix="00002")) == [2]
    assert sequences(lab, TrialFilter(with_result=True)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "order",
    [
        trial_service_pb2.TRIAL_ORDER_START_TIME,
        trial_service_pb2.TRIAL_ORDER_DURATION,
        trial_service_pb2.TRIAL_ORDER_STATE,
    ],
)
def test_every_order_lists_every_trial(
    lab: Lab, order: trial_service_pb2.TrialOrder.ValueType
) -> None:
    assert sorted(sequences(lab, TrialFilter(order=order))) == [0, 1, 2, 3, 4]


def test_a_trial_that_ends_between_two_pages_shifts_no_other(lab: Lab) -> None:
    wanted = TrialFilter(order=trial_service_pb2.TRIAL_ORDER_METRIC)
    first = page_after(rank(lab.experiment, wanted, lab.now_ms), "", 2, lab.now_ms)
    lab.finish(next(iter(lab.experiment.live.values())), 0.5)  # better than all that were shown

    second = page_after(rank(lab.experiment, wanted, lab.now_ms), first.next_token, 2)

    shown = [trial.sequence_id for trial in first.items + second.items]
    assert shown == [2, 3, 0, 1]


def test_durations_are_those_of_the_moment_that_is_asked_for(lab: Lab) -> None:
    order = trial_service_pb2.TRIAL_ORDER_DURATION
    running = next(iter(lab.experiment.live.values()))

    rows = rank(lab.experiment, TrialFilter(order=order), running.started_at_ms + 7)

    assert {trial.sequence_id: place for place, trial in rows}[4] == (False, 7, 4)


class CountingTrials(dict[str, Trial]):
    """Trials that count how often one is looked up, or all are walked through."""

    lookups = 0
    walks = 0

    def __getitem__(self, trial_id: str) -> Trial:
        self.lookups += 1
        return super().__getitem__(trial_id)

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()


def test_whole_list_page_by_page_takes_linear_time(lab: Lab) -> None:
    count, size = 4_000, 100
    one = next(iter(lab.experiment.trials.values()))
    trials = CountingTrials(
        {f"{number:05d}": replace(one, sequence_id=number) for number in range(count)}
    )
    lab.experiment.trials = trials
    index, token, found = SequenceIndex(), "", list[int]()

    while True:
        ids = index.ids("e", lab.experiment)
        page = page_by_sequence(lab.experiment, ids, token, size, lab.now_ms)
        found += [trial.sequence_id for trial in page.items]
        token = page.next_token
        if not token:
            break

    assert found == list(range(count))
    assert trials.walks == 1
    assert trials.lookups <= count + count // size * 14  # each page, and a binary search


def test_trials_created_between_two_pages_are_listed(lab: Lab) -> None:
    index = SequenceIndex()
    ids = index.ids("e", lab.experiment)
    first = page_by_sequence(lab.experiment, ids, "", 3, lab.now_ms)
    one = next(iter(lab.experiment.trials.values()))
    lab.experiment.trials["00005"] = replace(one, sequence_id=5)

    ids = index.ids("e", lab.experiment)
    second = page_by_sequence(lab.experiment, ids, first.next_token, 9, lab.now_ms)

    assert [trial.sequence_id for trial in second.items] == [3, 4, 5]


def test_index_of_another_experiment_of_the_same_id_is_made_anew(lab: Lab) -> None:
    index = SequenceIndex()
    before = index.ids("e", lab.experiment)

    after = index.ids("e", Lab(Budget(trial_concurrency=1)).experiment)

    assert len(before) == 5
    assert after == []
