"""Progress of an exploration for users."""

from __future__ import annotations

import pytest

from svc_nas.domain import events
from svc_nas.domain.progress import Progress


def recorded(parameter_id: int) -> events.CandidatesRecorded:
    one = events.RecordedCandidate(parameter_id, "k", {"sample": {"width": parameter_id}})
    return events.CandidatesRecorded("", (one,), exhausted=False)


def measured(parameter_id: int, metric: object, state: str = "SUCCEEDED") -> list[events.Event]:
    trial_id = f"t{parameter_id}"
    return [
        recorded(parameter_id),
        events.TrialScheduled(trial_id, parameter_id),
        events.MetricReported(trial_id, metric, is_final=True),
        events.TrialEnded(trial_id, state),
    ]


def progress_of(*found: events.Event) -> Progress:
    progress = Progress()
    for event in found:
        progress.feed(event)
    return progress


def test_candidates_are_counted_by_the_end_of_their_trials() -> None:
    progress = progress_of(
        *measured(0, 1.0),
        *measured(1, 2.0, state="FAILED"),
        recorded(2),
        events.TrialScheduled("t2", 2),
        *measured(3, 3.0),
        events.TrialScheduled("of a user", 9),
    )

    assert (progress.candidates, progress.running) == (4, 1)
    assert (progress.succeeded, progress.failed) == (2, 1)


def test_setup_and_state_are_those_of_the_log() -> None:
    setup = events.ExplorationCreated("0" * 64, "Random", "E", "simplified", "", "/code", 2, seed=1)
    progress = Progress()
    assert (progress.setup, progress.generation, progress.state) == (None, 0, "")
    assert (progress.paused, progress.exhausted, progress.ended) == (False, False, False)

    progress.feed(setup)
    progress.feed(events.StateChanged("DONE"))

    assert (progress.setup, progress.state) == (setup, "DONE")


@pytest.mark.parametrize("wrap", [float, lambda number: {"default": number, "size": 1}])
def test_best_models_come_first(wrap: object) -> None:
    assert callable(wrap)
    found = [
        event for number in (0.5, 0.9, 0.1) for event in measured(round(10 * number), wrap(number))
    ]

    top = progress_of(*found).top(2)

    assert [one.sample for one in top] == [{"width": 9}, {"width": 5}]


def test_model_of_a_one_shot_search_is_the_architecture_of_its_result() -> None:
    one = events.RecordedCandidate(0, "k", {"sample": {}})
    found = measured(0, {"default": 0.5, "size": 3, "architecture": {"width": 4}})
    found[0] = events.CandidatesRecorded("", (one,), exhausted=False)

    (top,) = progress_of(*found).top(1)

    assert (top.sample, top.metric) == ({"width": 4}, {"default": 0.5, "size": 3})


def test_objective_of_another_model_may_be_named_architecture() -> None:
    metric = {"default": 0.5, "architecture": 3}

    (top,) = progress_of(*measured(4, metric)).top(1)

    assert (top.sample, top.metric) == ({"width": 4}, metric)


def test_models_without_a_number_are_left_out() -> None:
    found = [*measured(0, "text"), *measured(1, float("nan")), *measured(2, 1.0)]

    assert [one.trial_id for one in progress_of(*found).top(5)] == ["t2"]


def test_last_final_metric_counts() -> None:
    found = measured(0, 1.0)
    found.insert(3, events.MetricReported("t0", 3.0, is_final=True))

    assert progress_of(*found).top(1)[0].metric == 3.0


def test_pause_and_end_are_shown() -> None:
    progress = progress_of(
        events.AlgorithmRequested(1, "/exp", "nas"),
        events.BudgetChanged(0),
        events.CandidatesRecorded("1-0", (), exhausted=True),
        events.ExperimentEnded(),
    )

    assert (progress.paused, progress.exhausted, progress.ended) == (True, True, True)


@pytest.mark.parametrize(("concurrency", "paused"), [(0, True), (1, False), (4, False)])
def test_exploration_without_slots_is_paused(concurrency: int, paused: bool) -> None:
    assert progress_of(events.BudgetChanged(concurrency)).paused is paused


def test_new_start_forgets_candidates_without_a_trial_and_the_end() -> None:
    ended = events.CandidatesRecorded("", (), exhausted=True)
    progress = progress_of(recorded(0), ended, events.ExperimentEnded())
    assert (progress.exhausted, progress.ended) == (True, True)

    for event in (events.AlgorithmRequested(2), events.TrialScheduled("t0", 0)):
        progress.feed(event)

    assert (progress.generation, progress.exhausted, progress.ended) == (2, False, False)
    assert progress.candidates == 0


def test_end_of_a_trial_that_is_no_candidates_counts_for_none() -> None:
    progress = progress_of(events.TrialEnded("of a user", "SUCCEEDED"))

    assert (progress.succeeded, progress.failed) == (0, 0)


def test_candidate_without_a_sample_has_no_choices() -> None:
    one = events.RecordedCandidate(0, "k", {})
    found = [events.CandidatesRecorded("", (one,), exhausted=False), *measured(0, 1.0)[1:]]

    assert progress_of(*found).top(1)[0].sample == {}
