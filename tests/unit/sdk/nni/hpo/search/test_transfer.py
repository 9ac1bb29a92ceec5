"""Proposals by the ranks of earlier, related searches."""

import json
import math
from typing import Any

import pytest

from nni.hpo import Study, optimize
from nni.hpo.objectives import MINIMIZED
from nni.hpo.search.transfer import TransferProposer, shared_values
from nni.hpo.space.parser import parse_space

SPACE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "uniform", "_value": [0, 1]},
}


def earlier(scale: float, centre: float = 0.8, count: int = 25) -> list[dict[str, Any]]:
    grid = [(i % 5 / 4, i // 5 / 4) for i in range(count)]
    return [
        {"parameter": {"x": x, "y": y}, "value": scale * ((x - centre) ** 2 + (y - centre) ** 2)}
        for x, y in grid
    ]


def loss(p: dict[str, Any]) -> float:
    return float((p["x"] - 0.75) ** 2 + (p["y"] - 0.75) ** 2)


def warm(*searches: list[dict[str, Any]], space: dict[str, Any] = SPACE, **arguments: Any) -> Study:
    """Return a study that knows earlier searches by rank."""
    chosen = {"tuner": "TPE", "seed": 0, **arguments}
    return Study(space, warm_start_from=list(searches), warm_start_by="rank", **chosen)


def play(study: Study, trials: int, sign: float = 1.0) -> list[dict[str, Any]]:
    """Return the configurations of some trials."""
    found = []
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, sign * loss(trial.parameters))
        found.append(trial.parameters)
    return found


@pytest.mark.parametrize("tuner", ["TPE", "auto", "Random"])
def test_first_results_that_agree_lead_to_where_the_earlier_searches_were_good(tuner: str) -> None:
    configurations = play(warm(earlier(1), earlier(1e9), tuner=tuner), 6)

    assert min(map(loss, configurations[3:])) < 0.05


@pytest.mark.parametrize("tuner", ["TPE", "auto", "Random"])
def test_first_proposals_are_those_without_a_warm_start(tuner: str) -> None:
    assert play(warm(earlier(1), tuner=tuner), 3) == play(Study(SPACE, tuner=tuner, seed=0), 3)


@pytest.mark.parametrize("tuner", ["TPE", "auto"])
def test_search_that_contradicts_is_the_one_without_a_warm_start(tuner: str) -> None:
    cold = play(Study(SPACE, tuner=tuner, seed=0), 20, sign=-1.0)

    assert play(warm(earlier(1), earlier(1e9), tuner=tuner), 20, sign=-1.0) == cold


def test_the_scale_of_an_earlier_search_makes_no_difference() -> None:
    assert play(warm(earlier(1)), 8) == play(warm(earlier(1e6)), 8)


def test_only_the_better_side_counts_when_the_mode_is_maximize() -> None:
    configurations = play(warm(earlier(1), optimize_mode="maximize"), 10)

    assert max(map(loss, configurations[3:])) > 0.5


def test_the_tuner_keeps_a_share_of_the_proposals() -> None:
    proposer = TransferProposer([earlier(1)], MINIMIZED, 0)
    proposer.update_search_space(parse_space(SPACE, algorithm="test"))
    made = []
    for number in range(20):
        proposal = proposer.propose([])
        made.append(proposal is not None)
        own = proposal or {"x": number * 11 % 20 / 20, "y": number * 7 % 20 / 20}
        proposer.learn(own, loss(own))

    assert not any(made[:3])
    assert 6 <= sum(made[3:]) <= 11  # at most 0.6 of them


def test_failures_count_as_the_worst_results() -> None:
    proposer = TransferProposer([earlier(1)], MINIMIZED, 0)
    proposer.update_search_space(parse_space(SPACE, algorithm="test"))
    for x, y in [(0.0, 0.0), (0.1, 0.3), (0.7, 0.9), (0.8, 0.8), (0.85, 0.75), (0.3, 0.1)]:
        proposer.learn({"x": x, "y": y}, math.nan if x > 0.5 else x + y)

    assert [proposer.propose([]) for _ in range(5)] == [None] * 5


def test_running_trials_get_other_proposals() -> None:
    study = warm(earlier(1))
    play(study, 5)
    asked = [study.ask().parameters for _ in range(6)]

    assert len({json.dumps(one) for one in asked}) == 6


def test_other_spaces_share_what_they_have_in_common() -> None:
    space = {**SPACE, "z": {"_type": "choice", "_value": ["a", "b"]}}
    narrow = {**space, "x": {"_type": "uniform", "_value": [0, 0.5]}}

    assert set(play(warm(earlier(1), space=space), 6)[-1]) == {"x", "y", "z"}
    assert max(one["x"] for one in play(warm(earlier(1), space=narrow), 8)[3:]) > 0.4


def test_constraints_of_the_new_space_are_kept() -> None:
    space = {**SPACE, "_constraints": ["x + y <= 1"]}

    assert all(one["x"] + one["y"] <= 1 for one in play(warm(earlier(1), space=space), 12))


def test_largest_of_many_earlier_searches_are_modelled() -> None:
    """Of twenty-one searches one is left out: a small one, in whatever place it is."""
    tiny = [earlier(1, count=1)] * 20

    for searches in ([*tiny, earlier(1)], [earlier(1), *tiny]):
        proposer = TransferProposer(searches, MINIMIZED, 0)
        proposer.update_search_space(parse_space(SPACE, algorithm="test"))
        for x, y in [(0.0, 0.0), (0.1, 0.3), (0.7, 0.9), (0.8, 0.8), (0.85, 0.75), (0.3, 0.1)]:
            proposer.learn({"x": x, "y": y}, loss({"x": x, "y": y}))

        assert any(proposer.propose([]) is not None for _ in range(5))


def test_values_are_shared_by_name_and_dropped_outside_the_new_range() -> None:
    nested = parse_space(
        {
            "a": {"_type": "uniform", "_value": [0, 1]},
            "model": {
                "_type": "choice",
                "_value": [{"_name": "svm", "c": {"_type": "uniform", "_value": [0, 1]}}, "none"],
            },
        },
        algorithm="test",
    )

    found = shared_values(nested, {"a": 0.5, "old": 3, "model": {"_name": "svm", "c": 0.25}})
    assert list(found.values()) == [0.5, 0, 0.25]
    assert shared_values(nested, {"a": 2.0, "model": {"_name": "svm", "c": 0.25}}) == {}
    assert shared_values(nested, "no dict") == {}


def test_search_without_anything_in_common_leaves_all_to_the_tuner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = [{"parameter": {"q": i}, "value": i} for i in range(9)]

    assert play(warm(other), 6) == play(Study(SPACE, tuner="TPE", seed=0), 6)
    assert "left out" in caplog.text


def test_restored_study_proposes_the_same() -> None:
    study, again = warm(earlier(1)), warm(earlier(1))
    play(study, 5)
    study.tell(study.ask(), None)
    again.load_state(json.loads(json.dumps(study.state())))

    assert play(study, 6) == play(again, 6)


def test_state_replaces_the_results_that_the_search_knew() -> None:
    first, again = (TransferProposer([earlier(1)], MINIMIZED, 0) for _ in range(2))
    places = [(0.0, 0.0), (0.1, 0.3), (0.7, 0.9), (0.8, 0.8), (0.85, 0.75), (0.3, 0.1)]
    for proposer, sign in ((first, 1.0), (again, -1.0)):
        proposer.update_search_space(parse_space(SPACE, algorithm="test"))
        for x, y in places:
            proposer.learn({"x": x, "y": y}, sign * loss({"x": x, "y": y}))
    assert [again.propose([]) for _ in range(5)] == [None] * 5

    again.load_state(json.loads(json.dumps(first.state())))

    proposals = [first.propose([]) for _ in range(5)]
    assert any(proposals)
    assert [again.propose([]) for _ in range(5)] == proposals


def test_finite_space_is_searched_without_repetition() -> None:
    space = {"x": {"_type": "choice", "_value": list(range(8))}}
    known = [{"parameter": {"x": x}, "value": -x} for x in range(8)]
    study = warm(known, space=space, tuner="Random", duplicates="resample")
    found = []
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, -trial.parameters["x"])
        found.append(trial.parameters["x"])

    assert sorted(found) == list(range(8))


def test_what_ranks_cannot_do_is_refused() -> None:
    modes = {"a": "minimize", "b": "minimize"}
    with pytest.raises(ValueError, match="warm_start_by must be 'value' with several"):
        Study(SPACE, optimize_mode=modes, warm_start_from=[earlier(1)], warm_start_by="rank")
    with pytest.raises(ValueError, match="must be one of value, rank"):
        Study(SPACE, warm_start_from=[earlier(1)], warm_start_by="size")  # type: ignore[arg-type] # what a user may write
    with pytest.raises(ValueError, match="with an advisor"):
        optimize(loss, SPACE, advisor="ASHA", warm_start_by="rank", trials=2)
    batch = {"combine_params": {"_type": "choice", "_value": [{"x": 1}]}}
    with pytest.raises(ValueError, match="own form"):
        Study(batch, tuner="BatchTuner", warm_start_from=[earlier(1)], warm_start_by="rank")


@pytest.mark.parametrize("running", [0, 3, 6])
def test_proposal_is_a_configuration_that_no_trial_has(running: int) -> None:
    space = {"x": {"_type": "choice", "_value": list(range(13))}}
    known = [{"parameter": {"x": x}, "value": x} for x in range(13)]
    proposer = TransferProposer([known], MINIMIZED, 0)
    proposer.update_search_space(parse_space(space, algorithm="test"))
    for x in range(6):
        proposer.learn({"x": x}, float(x))
    pending = [{"x": x} for x in range(6, 6 + running)]

    proposals = [proposer.propose(pending) for _ in range(5)]

    made = [proposal["x"] for proposal in proposals if proposal is not None]
    assert len(made) >= 2
    assert min(made) >= 6 + running


def test_proposal_that_runs_already_is_not_made_again() -> None:
    space = {"x": {"_type": "choice", "_value": list(range(13))}}
    known = [{"parameter": {"x": x}, "value": x} for x in range(13)]
    running: list[dict[str, Any]] = []

    for _ in range(4):
        proposer = TransferProposer([known], MINIMIZED, 0)
        proposer.update_search_space(parse_space(space, algorithm="test"))
        for x in range(6):
            proposer.learn({"x": x}, float(x))
        proposal = proposer.propose(running)
        assert proposal is not None
        running.append(proposal)

    assert len({one["x"] for one in running}) == 4
    assert not {one["x"] for one in running} & set(range(6))


def turns(losses: list[float], count: int) -> list[bool]:
    """Return which of some proposals are by an earlier search whose losses rise with x."""
    space = {"x": {"_type": "choice", "_value": list(range(13))}}
    known = [{"parameter": {"x": x}, "value": x} for x in range(13)]
    proposer = TransferProposer([known], MINIMIZED, 0)
    proposer.update_search_space(parse_space(space, algorithm="test"))
    for x, loss_of_x in enumerate(losses):
        proposer.learn({"x": x}, loss_of_x)
    return [proposer.propose([]) is not None for _ in range(count)]


def test_three_of_five_proposals_follow_earlier_searches_that_agree() -> None:
    assert turns([0, 1, 2, 3, 4, 5], 5) == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("losses", "share"), [([1, 0, 3, 2], 0.0), ([0, 2, 1, 3], 0.38), ([1, 0, 2, 3], 0.6)]
)
def test_share_of_the_proposals_rises_with_the_trust(losses: list[float], share: float) -> None:
    # The trust is 0.39, 0.595 and 0.648: it proposes from 0.5 on, and at most from 0.65 on.
    assert sum(turns(losses, 40)) == pytest.approx(40 * share, abs=1)


def test_two_results_are_too_few_for_a_proposal() -> None:
    made = []
    for count in (2, 3):
        proposer = TransferProposer([earlier(1)], MINIMIZED, 0)
        proposer.update_search_space(parse_space(SPACE, algorithm="test"))
        for x in (0.0, 0.4, 0.8)[:count]:
            proposer.learn({"x": x, "y": x}, loss({"x": x, "y": x}))
        made.append(any(proposer.propose([]) is not None for _ in range(9)))

    assert made == [False, True]
