"""TPE as a tuner: what it learns from and how well it searches."""

import functools
import inspect
import json
import logging
import math
import statistics
from typing import Any

import pytest

from nni.hpo import Study, TPETuner, optimize
from nni.hpo.objectives import objectives_of
from nni.hpo.registry.factory import create
from nni.hpo.space.parser import contains, parse_space
from nni.hpo.tuners.tpe import STARTUP_TRIALS, TpeArguments

BRANIN_SPACE = {
    "x": {"_type": "uniform", "_value": [-5, 10]},
    "y": {"_type": "uniform", "_value": [0, 15]},
}
LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def branin(parameters: dict[str, float]) -> float:
    x, y = parameters["x"], parameters["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


@functools.cache
def values_on_branin(seed: int, trials: int) -> tuple[float, ...]:
    """Return the values of the trials in order."""
    values: list[float] = []

    def evaluate(parameters: dict[str, float]) -> float:
        values.append(branin(parameters))
        return values[-1]

    optimize(evaluate, BRANIN_SPACE, tuner="TPE", trials=trials, seed=seed)
    return tuple(values)


def ready(space: Any = LINE, **arguments: Any) -> TPETuner:
    tuner = TPETuner(**arguments)
    tuner.update_search_space(space)
    return tuner


def tell(tuner: TPETuner, count: int, target: float = 0.7) -> None:
    for parameter_id in range(count):
        parameters = tuner.generate_parameters(parameter_id)
        tuner.receive_trial_result(parameter_id, parameters, abs(parameters["x"] - target))
        tuner.trial_end(parameter_id, True)


def test_both_modes_find_their_optimum() -> None:
    low, high = ready(seed=0), ready(optimize_mode="maximize", seed=0)
    tell(low, 40)
    tell(high, 40)

    assert abs(low.suggest()["x"] - 0.7) < 0.1
    assert high.suggest()["x"] < 0.2


@pytest.mark.claim("hpo", 48)
def test_imported_samples_count_as_results() -> None:
    tuner = ready(seed=0)
    grid = [i / STARTUP_TRIALS for i in range(STARTUP_TRIALS)]

    tuner.import_data([{"parameter": {"x": x}, "value": abs(x - 0.7)} for x in grid])

    proposals = [tuner.suggest()["x"] for _ in range(40)]
    # Draws from the prior are this close to 0.7 with probability 0.5; 40 of them would give 20.
    assert sum(abs(x - 0.7) < 0.25 for x in proposals) >= 35


@pytest.mark.claim("hpo", 48)
def test_dict_values_are_imported_and_bad_samples_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tuner = ready(seed=0)
    good = [{"parameter": {"x": 0.5}, "value": {"default": 1.0, "loss": 2}}]
    bad: list[dict[str, Any]] = [
        {"parameter": {"y": 1}, "value": 1},
        {"parameter": {"x": 1}, "value": "a"},
        {},
    ]

    with caplog.at_level(logging.WARNING):
        tuner.import_data([*bad, *good])

    assert tuner.state()["observed"] == [[{"x": 0.5}, 1.0]]
    assert len(caplog.records) == 3


@pytest.mark.parametrize("value", [math.nan, {"default": math.nan}])
def test_imported_nan_is_learned_as_a_failure(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    tuner = ready(seed=0)

    with caplog.at_level(logging.WARNING):
        tuner.import_data([{"parameter": {"x": 0.5}, "value": value}])

    assert tuner.state()["failed"] == [[{"x": 0.5}, 0]]
    assert caplog.records == []


@pytest.mark.claim("hpo", 49)
def test_number_of_observations_is_the_number_of_finished_trials() -> None:
    tuner = ready(seed=0)
    tell(tuner, 12)
    resumed = ready(seed=0)

    resumed.import_data([{"parameter": c, "value": loss} for c, loss in tuner.state()["observed"]])

    assert len(resumed.state()["observed"]) == 12


def test_new_space_keeps_the_observations_that_lie_in_it() -> None:
    tuner = ready(seed=0)
    tell(tuner, 30)
    known = tuner.state()["observed"]

    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0.5, 1]}})

    kept = [item for item in known if item[0]["x"] >= 0.5]
    assert tuner.state()["observed"] == kept
    assert tuner.suggest()["x"] >= 0.5


@pytest.mark.parametrize("arguments", [{}, {"parallel_optimize": True}])
def test_trial_counts_as_running_until_it_ends(arguments: dict[str, Any]) -> None:
    tuner = ready(seed=0, **arguments)
    tell(tuner, 20)
    parameters = tuner.generate_parameters(100)

    assert tuner.state()["running"] == [[100, parameters]]
    tuner.trial_end(100, success=False)
    assert tuner.state()["running"] == []


def test_without_parallel_optimize_only_where_trials_run_matters() -> None:
    """Proposals follow from the running configurations, whatever the results known so far are."""
    tuners = [ready(seed=0), ready(seed=0, constant_liar_type="max")]
    for tuner in tuners:
        tell(tuner, 20)
        tuner.generate_multiple_parameters(list(range(100, 110)))

    assert tuners[0].generate_parameters(110) == tuners[1].generate_parameters(110)


def test_search_beside_open_trials_goes_on_from_its_state() -> None:
    tuner, resumed = ready(seed=0), ready(seed=1)
    tell(tuner, 20)
    tuner.generate_multiple_parameters([100, 101])

    resumed.load_state(json.loads(json.dumps(tuner.state())))

    assert resumed.state() == tuner.state()
    assert resumed.generate_parameters(102) == tuner.generate_parameters(102)


@pytest.mark.parametrize("outcome", ["result", "failure"])
def test_lie_ends_with_its_trial(outcome: str) -> None:
    tuner = ready(seed=0, parallel_optimize=True)
    tell(tuner, 20)
    parameters = tuner.generate_parameters(100)

    if outcome == "result":
        tuner.receive_trial_result(100, parameters, 0.5)
    tuner.trial_end(100, outcome == "result")

    assert tuner.state()["running"] == []
    assert len(tuner.state()["observed"]) == 20 + (outcome == "result")


def test_lies_leave_no_trace_in_the_observations() -> None:
    tuner = ready(seed=0, parallel_optimize=True)
    tell(tuner, 20)
    before = tuner.state()["observed"]

    tuner.generate_multiple_parameters(list(range(100, 120)))

    assert tuner.state()["observed"] == before
    assert [len(model.observations) for model in tuner._models] == [20]
    assert len(tuner.state()["running"]) == 20


def test_branches_are_learned_separately() -> None:
    space = {
        "m": {
            "_type": "choice",
            "_value": [
                {"_name": "bad", "x": {"_type": "uniform", "_value": [0, 1]}},
                {"_name": "good", "x": {"_type": "uniform", "_value": [0, 1]}},
            ],
        }
    }

    def objective(parameters: dict[str, Any]) -> float:
        branch = parameters["m"]
        wanted = 0.2 if branch["_name"] == "bad" else 0.8
        return float((branch["_name"] == "bad") + (branch["x"] - wanted) ** 2)

    bests = [optimize(objective, space, tuner="TPE", trials=60, seed=seed) for seed in range(5)]

    assert all(best.best_parameters["m"]["_name"] == "good" for best in bests)
    assert statistics.median(best.best_value for best in bests) < 1e-3


def test_dict_result_without_number_is_no_observation() -> None:
    tuner = ready(seed=0)
    tuner.receive_trial_result(0, {"x": 0.5}, {"default": math.nan})
    tuner.receive_trial_result(1, {"x": 0.5}, math.inf)

    assert tuner.state()["observed"] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"optimize_mode": "max"}, "optimize_mode must be"),
        (
            {"constant_liar_type": "median"},
            "liar_type must be one of 'min', 'max', 'mean'",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        TPETuner(**arguments)  # type: ignore[arg-type] # wrong on purpose


@pytest.mark.parametrize(
    "entry",
    [
        {"_type": "uniform", "_value": [2, 2]},
        {"_type": "loguniform", "_value": [2, 2]},
        {"_type": "quniform", "_value": [0, 1e-9, 1e-12]},
        {"_type": "randint", "_value": [0, 10**15]},
        {"_type": "randint", "_value": [7, 8]},
        {"_type": "choice", "_value": ["only"]},
        {"_type": "choice", "_value": list(range(2000))},
        {"_type": "uniform", "_value": [-8e307, 8e307]},
        {"_type": "normal", "_value": [1e9, 1e-3]},
        {"_type": "qlognormal", "_value": [-20, 1, 0.1]},
    ],
    ids=str,
)
def test_odd_spaces_are_searched_without_leaving_them(entry: dict[str, Any]) -> None:
    space = parse_space({"x": entry})
    tuner = ready({"x": entry}, seed=0)

    for parameter_id in range(60):
        parameters = tuner.generate_parameters(parameter_id)
        assert contains(space, parameters)
        tuner.receive_trial_result(parameter_id, parameters, float(parameter_id % 7) * 1e300)


@pytest.mark.claim("hpo", 31)
def test_branin_after_100_trials_few_seeds() -> None:
    # The claim asks for 0.72 as the median of 30; ours is 0.40, and random search has 0.76.
    assert statistics.median(min(values_on_branin(seed, 100)) for seed in range(5)) < 0.45


@pytest.mark.slow
@pytest.mark.claim("hpo", 31)
def test_branin_one_trial_at_a_time() -> None:
    runs = [values_on_branin(seed, 240) for seed in range(30)]

    assert statistics.median(min(values[:100]) for values in runs) < 0.72
    assert statistics.median(min(values) for values in runs) < 0.53


def best_at_concurrency_40(seed: int, *, parallel: bool) -> float:
    study = Study(
        BRANIN_SPACE,
        tuner="TPE",
        tuner_args={"parallel_optimize": parallel, "constant_liar_type": "mean"},
        seed=seed,
    )
    running = [study.ask() for _ in range(40)]
    for asked in range(40, 280):
        trial = running.pop(0)
        study.tell(trial, branin(trial.parameters))
        if asked < 240:
            running.append(study.ask())
    return study.best_value


@pytest.mark.claim("hpo", 32)
def test_lies_help_at_concurrency_40() -> None:
    seeds = range(20)
    off, on = (
        statistics.fmean(best_at_concurrency_40(seed, parallel=parallel) for seed in seeds)
        for parallel in (False, True)
    )

    assert on < off


SEVERAL = objectives_of({"a": "minimize", "b": "maximize"})


def pair_of(parameters: dict[str, float]) -> dict[str, float]:
    return {"a": (parameters["x"] - 0.2) ** 2, "b": -((parameters["x"] - 0.6) ** 2)}


def tell_pairs(tuner: TPETuner, count: int) -> None:
    for parameter_id in range(count):
        parameters = tuner.generate_parameters(parameter_id)
        tuner.receive_trial_result(parameter_id, parameters, pair_of(parameters))
        tuner.trial_end(parameter_id, True)


def ready_for_several(**arguments: Any) -> TPETuner:
    tuner = TPETuner(seed=0, **arguments)
    tuner.set_objectives(SEVERAL)
    tuner.update_search_space(LINE)
    return tuner


def test_several_objectives_are_searched_over_the_whole_front() -> None:
    tuner = ready_for_several()

    tell_pairs(tuner, 80)

    found = [configuration["x"] for configuration, _ in tuner.state()["observed"][40:]]
    # The front is 0.2 .. 0.6, four tenths of the range; both of its halves are wanted.
    assert sum(0.18 < x < 0.62 for x in found) > 30
    assert min(sum(x < 0.4 for x in found), sum(x > 0.4 for x in found)) > 8


def test_several_objectives_go_on_from_a_state() -> None:
    tuner = ready_for_several(parallel_optimize=True)
    tell_pairs(tuner, 30)
    tuner.generate_parameters(100)
    resumed = ready_for_several(parallel_optimize=True)

    resumed.load_state(json.loads(json.dumps(tuner.state())))

    assert [tuner.suggest() for _ in range(5)] == [resumed.suggest() for _ in range(5)]


@pytest.mark.parametrize("lie", ["min", "max", "mean"])
def test_running_trials_of_several_objectives_may_take_part(lie: str) -> None:
    tuner = ready_for_several(parallel_optimize=True, constant_liar_type=lie)
    tell_pairs(tuner, 30)

    proposals = tuner.generate_multiple_parameters(list(range(100, 110)))

    assert len({proposal["x"] for proposal in proposals}) == 10


def test_result_without_all_objectives_is_no_observation() -> None:
    tuner = ready_for_several()
    tuner.receive_trial_result(0, {"x": 0.5}, {"a": 1.0})
    tuner.receive_trial_result(1, {"x": 0.5}, {"a": 1.0, "b": math.nan})

    assert tuner.state()["observed"] == []


def test_limit_on_an_outcome_keeps_the_search_within_it() -> None:
    tuner = TPETuner(seed=0)
    tuner.set_objectives(objectives_of("minimize", [{"metric": "cost", "max": 0.5}]))
    tuner.update_search_space(LINE)

    for parameter_id in range(60):
        parameters = tuner.generate_parameters(parameter_id)
        # Best at 1, where the cost is too high: the best that is allowed is 0.5.
        report = {"default": -parameters["x"], "cost": parameters["x"]}
        tuner.receive_trial_result(parameter_id, parameters, report)
        tuner.trial_end(parameter_id, True)

    found = [configuration["x"] for configuration, _ in tuner.state()["observed"]]
    assert max(x for x in found if x <= 0.5) > 0.48
    assert sum(x > 0.6 for x in found[30:]) < 10


def test_result_without_the_limited_metric_is_kept_as_the_worst() -> None:
    tuner = TPETuner(seed=0)
    tuner.set_objectives(objectives_of("minimize", [{"metric": "cost", "max": 0.5}]))
    tuner.update_search_space(LINE)
    tuner.receive_trial_result(0, {"x": 0.5}, {"default": 1.0})

    state = json.loads(json.dumps(tuner.state(), allow_nan=False))

    assert state["observed"][0][0] == {"x": 0.5}


def best_of_ten_at_a_time(seed: int, **arguments: Any) -> float:
    study = Study(BRANIN_SPACE, tuner="TPE", tuner_args=arguments, seed=seed)
    running = [study.ask() for _ in range(10)]
    for asked in range(10, 110):
        trial = running.pop(0)
        study.tell(trial, branin(trial.parameters))
        if asked < 100:
            running.append(study.ask())
    return study.best_value


@pytest.mark.parametrize("lie", [None, "mean", "max", "min"])
def test_ten_in_parallel_keep_nine_tenths_of_what_is_gained_on_random_search(
    lie: str | None,
) -> None:
    arguments = {"parallel_optimize": True, "constant_liar_type": lie} if lie else {}
    seeds = range(7)
    alone = statistics.median(min(values_on_branin(seed, 100)) for seed in seeds)

    found = statistics.median(best_of_ten_at_a_time(seed, **arguments) for seed in seeds)

    # Random search has 0.76 after 100 trials, by the specification.
    assert 0.76 - found >= 0.9 * (0.76 - alone)


NNI_3_EXAMPLE = {
    "constant_liar_type": "mean",
    "n_startup_jobs": 10,
    "n_ei_candidates": 20,
    "linear_forgetting": 100,
    "prior_weight": 0,
    "gamma": 0.5,
}
"""Of the page of TPE in the documentation of NNI 3.0."""


def proposals(tuner: TPETuner, count: int) -> list[dict[str, Any]]:
    found = []
    for parameter_id in range(count):
        found.append(tuner.generate_parameters(parameter_id))
        if parameter_id % 2:
            for ended in (parameter_id - 1, parameter_id):
                loss = abs(found[ended]["x"] - 0.7)
                tuner.receive_trial_result(ended, found[ended], loss)
                tuner.trial_end(ended, True)
    return found


def test_settings_of_nni_3_are_taken_over() -> None:
    tuner = create("tuner", "TPE", {"optimize_mode": "minimize", "tpe_args": NNI_3_EXAMPLE}, 0)
    assert isinstance(tuner, TPETuner)
    tuner.update_search_space(LINE)

    tell(tuner, 40)

    assert abs(tuner.suggest()["x"] - 0.7) < 0.1


def test_settings_without_a_change_propose_the_same() -> None:
    settings = {"n_startup_jobs": 10, "n_ei_candidates": 32, "prior_weight": 1, "gamma": 0.45}

    assert proposals(ready(seed=1, tpe_args=settings), 40) == proposals(ready(seed=1), 40)


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"constant_liar_type": "best"}, {"parallel_optimize": True, "constant_liar_type": "min"}),
        ({"constant_liar_type": "worst"}, {"parallel_optimize": True, "constant_liar_type": "max"}),
        ({"constant_liar_type": "mean"}, {"parallel_optimize": True, "constant_liar_type": "mean"}),
        ({"constant_liar_type": None}, {"parallel_optimize": False}),
    ],
)
def test_liar_of_nni_3_is_ours_under_another_name(
    settings: dict[str, Any], arguments: dict[str, Any]
) -> None:
    renamed = ready(seed=2, parallel_optimize=True, tpe_args=settings)

    assert proposals(renamed, 40) == proposals(ready(seed=2, **arguments), 40)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_startup_jobs": 0},
        {"n_startup_jobs": 30},
        {"n_ei_candidates": 1},
        {"linear_forgetting": 3},
        {"prior_weight": 0},
        {"gamma": 2},
    ],
)
def test_each_setting_changes_proposals_within_the_space(settings: dict[str, Any]) -> None:
    found = proposals(ready(seed=3, tpe_args=settings), 40)

    assert found != proposals(ready(seed=3), 40)
    assert all(contains(parse_space(LINE), one) for one in found)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"gamma": 0}, "tpe_args.gamma must be a number > 0, got 0"),
        ({"n_ei_candidates": 0}, "tpe_args.n_ei_candidates must be an int in"),
        ({"constant_liar_type": "min"}, "tpe_args.constant_liar_type must be one of 'best'"),
        ({"n_candidates": 3}, "unknown argument 'tpe_args.n_candidates'.*n_ei_candidates"),
    ],
)
def test_bad_settings_of_nni_3_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ready(tpe_args=settings)
    with pytest.raises(ValueError, match=text):
        create("tuner", "TPE", {"tpe_args": settings})


def completed_and_stopped(tuner: TPETuner, value: Any, shown: Any, event: str) -> list[Any]:
    """Let one trial complete and one end without a result; return what the tuner observed."""
    first = tuner.generate_parameters(0)
    tuner.receive_trial_result(0, first, value)
    tuner.trial_end(0, True, intermediate=[value])
    tuner.generate_parameters(1)
    tuner.trial_end(1, False, event=event, intermediate=[shown])
    return [outcome for _, outcome in tuner.state()["observed"]]


@pytest.mark.parametrize(
    ("event", "expected"), [("EARLY_STOPPED", [1.0, 3.0]), ("SYS_CANCELED", [1.0])]
)
def test_stopped_trial_has_an_estimated_loss(event: str, expected: list[float]) -> None:
    tuner = TPETuner("minimize", seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})

    assert completed_and_stopped(tuner, 1.0, 3.0, event) == expected


def test_stopped_trial_of_several_objectives_teaches_nothing() -> None:
    tuner = TPETuner("minimize", seed=0)
    tuner.set_objectives(objectives_of({"a": "minimize", "b": "minimize"}))
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})

    found = completed_and_stopped(tuner, {"a": 1, "b": 2}, {"a": 3, "b": 3}, "EARLY_STOPPED")

    assert len(found) == 1


def test_state_keeps_the_curves_of_completed_trials() -> None:
    tuner, other = TPETuner("minimize", seed=0), TPETuner("minimize", seed=0)
    for each in (tuner, other):
        each.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    completed_and_stopped(tuner, 1.0, 3.0, "EARLY_STOPPED")

    other.load_state(tuner.state())
    for each in (tuner, other):
        each.generate_parameters(2)
        each.trial_end(2, False, event="EARLY_STOPPED", intermediate=[5.0])

    assert other.state() == tuner.state()
    assert tuner.state()["observed"][-1][1] == 5.0


def test_resumed_tuner_learns_stopped_trials_again() -> None:
    tuner = TPETuner("minimize", seed=0)
    tuner.update_search_space(LINE)

    tuner.import_curves(
        [
            {"parameter": {"x": 0.2}, "value": 1.0, "intermediate": [3.0, 1.0]},
            {"parameter": {"x": 0.5}, "value": None, "intermediate": [4.0]},
        ]
    )

    assert tuner.state()["observed"] == [[{"x": 0.5}, 2.0]]


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("parallel_optimize", False),
        ("constant_liar_type", "min"),
        ("seed", None),
        ("tpe_args", None),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(TPETuner).parameters[argument].default == default


def test_settings_of_the_model_have_the_documented_defaults() -> None:
    settings = TpeArguments()

    assert settings.constant_liar_type is None
    assert settings.linear_forgetting is None
    assert (settings.n_startup_jobs, settings.n_ei_candidates) == (10, 32)
    assert (settings.prior_weight, settings.gamma) == (1.0, 0.45)


@pytest.mark.parametrize(("forgetting", "most", "newest"), [(None, 25, None), (7, 7, 7)])
def test_linear_forgetting_limits_the_good_results(
    forgetting: int | None, most: int, newest: int | None
) -> None:
    densities = TpeArguments(
        linear_forgetting=forgetting, gamma=0.3, n_ei_candidates=5, prior_weight=0.0
    ).densities

    assert (densities.good_limit, densities.newest) == (most, newest)
    assert (densities.good_factor, densities.candidates) == (0.3, 5)
    assert 0 < densities.prior_weight < 1e-6


def test_hosts_know_what_it_learns_from() -> None:
    assert TPETuner.multi_objective
    assert TPETuner.imports_failures
    assert TPETuner.learns_stopped


@pytest.mark.parametrize(("count", "modelled"), [(2, False), (3, True)])
def test_model_proposes_after_the_startup_trials(count: int, modelled: bool) -> None:
    tuner = ready(seed=0, tpe_args={"n_startup_jobs": 3})
    for number in range(count):
        tuner.receive_trial_result(number, {"x": number / 9}, float(number))
    before = tuner.state()

    tuner.generate_parameters(9)

    # Draws of the prior come from a generator of their own.
    assert (tuner.state()["rng"] != before["rng"]) is modelled
    assert (tuner.state()["prior"] == before["prior"]) is modelled


def test_draw_of_the_space_may_be_asked_for() -> None:
    tuner, fresh = ready(seed=0, tpe_args={"n_startup_jobs": 0}), ready(seed=0)
    tuner.receive_trial_result(0, {"x": 0.5}, 1.0)

    assert tuner.suggest(from_prior=True) == fresh.generate_parameters(0)


def test_failed_trials_are_kept_in_their_order_among_the_results() -> None:
    tuner, other = ready(seed=0), ready(seed=0)
    for number, x in enumerate((0.1, 0.2, 0.3, 0.4)):
        tuner.receive_trial_result(number, {"x": x}, math.nan if number % 2 else x)
    failed = tuner.generate_parameters(9)
    tuner.trial_end(9, False, event="FAILED")

    other.load_state(json.loads(json.dumps(tuner.state())))

    assert tuner.state()["failed"] == [[{"x": 0.2}, 1], [{"x": 0.4}, 2], [failed, 2]]
    assert other.state() == tuner.state()


@pytest.mark.parametrize("missing", ["failed", "curves"])
def test_state_of_an_earlier_version_is_taken(missing: str) -> None:
    tuner, other = ready(seed=0), ready(seed=0)
    tuner.receive_trial_result(0, {"x": 0.5}, 1.0)
    state = tuner.state()
    expected = {**state, "curves": other.state()["curves"]} if missing == "curves" else state

    other.load_state({key: value for key, value in state.items() if key != missing})

    assert other.state() == expected


def test_trials_that_end_for_another_reason_teach_nothing() -> None:
    tuner = ready(seed=0)
    tuner.generate_parameters(0)

    tuner.trial_end(0, False, event="USER_CANCELED", intermediate=[1.0])

    assert (tuner.state()["failed"], tuner.state()["observed"]) == ([], [])
    assert tuner.state()["running"] == []


@pytest.mark.parametrize(
    "settings",
    [
        {"n_startup_jobs": 0},
        {"n_ei_candidates": 1},
        {"linear_forgetting": 1},
        {"linear_forgetting": None},
        {"prior_weight": 0},
        {"gamma": 1e-9},
    ],
)
def test_least_settings_are_accepted(settings: dict[str, Any]) -> None:
    tuner = ready(seed=0, tpe_args=settings)

    tell(tuner, 12)

    assert 0 <= tuner.suggest()["x"] <= 1


@pytest.mark.parametrize(
    "settings",
    [
        {"n_startup_jobs": -1},
        {"n_ei_candidates": 0},
        {"linear_forgetting": 0},
        {"prior_weight": -0.1},
        {"gamma": 0},
    ],
)
def test_settings_below_the_least_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"tpe_args\.{next(iter(settings))} must be"):
        ready(tpe_args=settings)
