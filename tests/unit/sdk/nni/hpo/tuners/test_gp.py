"""Bayesian optimisation with a Gaussian process."""

import inspect
import math
from statistics import median

import pytest

from nni.hpo import GPTuner, RandomTuner, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of

BRANIN = {
    "x": {"_type": "uniform", "_value": [-5, 10]},
    "y": {"_type": "uniform", "_value": [0, 15]},
}
LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def branin(point: dict[str, float]) -> float:
    x, y = point["x"], point["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def bests(tuner: Tuner, trials: int, sign: float = 1.0) -> list[float]:
    """Give the best of Branin after each trial."""
    tuner.update_search_space(BRANIN)
    best, found = math.inf, []
    for number in range(trials):
        parameters = tuner.generate_parameters(number)
        value = branin(parameters)
        tuner.receive_trial_result(number, parameters, sign * value)
        best = min(best, value)
        found.append(best)
    return found


def taught(tuner: GPTuner, count: int = 15) -> GPTuner:
    tuner.update_search_space(LINE)
    for number in range(count):
        x = (number + 0.5) / count
        tuner.receive_trial_result(number, {"x": x}, (x - 0.42) ** 2)
    return tuner


@pytest.mark.claim("hpo", 33)
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_branin_within_sixty_trials() -> None:
    runs = [bests(GPTuner("minimize", seed=seed), 60) for seed in range(12)]

    assert median(run[29] for run in runs) < 0.9
    assert median(run[59] for run in runs) < 0.5
    assert median(run[59] for run in runs) < 0.397887 + 1e-3


def test_maximises_the_negative_just_as_well() -> None:
    minimised = bests(GPTuner("minimize", seed=3), 15)
    maximised = bests(GPTuner("maximize", seed=3), 15, sign=-1.0)

    assert maximised == minimised


@pytest.mark.claim("hpo", 34)
def test_first_ten_points_are_random() -> None:
    tuner, rival = GPTuner("minimize", seed=5), RandomTuner(seed=5)
    tuner.update_search_space(BRANIN)
    rival.update_search_space(BRANIN)

    for number in range(10):
        assert tuner.generate_parameters(number) == pytest.approx(rival.generate_parameters(number))


@pytest.mark.claim("hpo", 34)
def test_eleventh_point_is_the_model_s() -> None:
    tuner = taught(GPTuner("minimize", cold_start_num=11, seed=0), count=10)
    random = tuner.generate_parameters(10)
    tuner.trial_end(10, False)
    tuner.receive_trial_result(11, {"x": 0.99}, 0.3)

    assert tuner.generate_parameters(12)["x"] == pytest.approx(0.42, abs=0.03)
    assert abs(random["x"] - 0.42) > 0.03


@pytest.mark.claim("hpo", 34)
def test_unknown_utility_is_refused() -> None:
    with pytest.raises(ValueError, match="utility must be one of 'ei', 'ucb', 'poi', got 'foo'"):
        GPTuner(utility="foo")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("kappa", -1),
        ("xi", -0.1),
        ("nu", 0),
        ("alpha", -1e-9),
        ("cold_start_num", 0),
        ("selection_num_warm_up", 0.5),
        ("selection_num_starting_points", 0),
        ("ask_time_limit", -1),
    ],
)
def test_arguments_are_checked(argument: str, value: JsonValue) -> None:
    with pytest.raises(ValueError, match=argument):
        GPTuner(**{argument: value})


def test_counts_may_be_written_as_floats() -> None:
    tuner = taught(GPTuner("minimize", selection_num_warm_up=1e5, seed=0))  # type: ignore[arg-type] # as YAML gives it
    same = taught(GPTuner("minimize", selection_num_warm_up=100_000, seed=0))

    assert tuner.generate_parameters(99) == same.generate_parameters(99)


@pytest.mark.parametrize("utility", ["ei", "ucb", "poi"])
def test_every_utility_finds_the_hollow(utility: str) -> None:
    tuner = taught(GPTuner("minimize", utility=utility, kappa=0.1, seed=0))

    assert tuner.generate_parameters(99)["x"] == pytest.approx(0.42, abs=0.05)


def test_greater_kappa_explores_more() -> None:
    results = [({"x": 0.1}, 1.0), ({"x": 0.2}, 0.5), ({"x": 0.3}, 0.2), ({"x": 0.35}, 0.21)]
    near, far = (GPTuner("minimize", "ucb", kappa, cold_start_num=1, seed=0) for kappa in (0, 50))
    for tuner in (near, far):
        tuner.update_search_space(LINE)
        for number, (parameters, value) in enumerate(results):
            tuner.receive_trial_result(number, parameters, value)

    assert far.generate_parameters(9)["x"] > near.generate_parameters(9)["x"] + 0.1


def test_requests_at_the_same_time_get_points_apart() -> None:
    tuner = GPTuner("minimize", seed=0)
    bests(tuner, 20)

    points = [tuner.generate_parameters(100 + number) for number in range(6)]

    apart = [
        abs(a["x"] - b["x"]) + abs(a["y"] - b["y"])
        for index, a in enumerate(points)
        for b in points[:index]
    ]
    assert min(apart) > 1e-3


@pytest.mark.parametrize("utility", ["ei", "poi"])
def test_cost_aware_proposal_is_cheaper(utility: str) -> None:
    def proposed(*, cost_aware: bool) -> float:
        tuner = GPTuner("minimize", utility, cold_start_num=6, cost_aware=cost_aware, seed=1)
        tuner.update_search_space(LINE)
        for number, x in enumerate((0.0, 0.2, 0.4, 0.6, 0.8, 1.0)):
            tuner.receive_trial_result(number, {"x": x}, math.cos(9 * x))
            tuner.trial_end(number, True, duration_s=100**x)
        return float(tuner.generate_parameters(6)["x"])

    assert proposed(cost_aware=True) < proposed(cost_aware=False)


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("kappa", 5),
        ("xi", 0),
        ("nu", 2.5),
        ("alpha", 1e-06),
        ("cold_start_num", 10),
        ("selection_num_warm_up", 100000),
        ("selection_num_starting_points", 250),
        ("ask_time_limit", 0.1),
        ("cost_aware", False),
        ("cost_budget", None),
        ("robust", False),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(GPTuner).parameters[argument].default == default


def test_hosts_know_what_it_learns_from() -> None:
    assert GPTuner.multi_objective
    assert GPTuner.imports_failures
    assert GPTuner.learns_stopped


@pytest.mark.parametrize(
    ("modes", "limits", "outcome"),
    [
        ({"near": "minimize"}, [], 1.0),
        ({"near": "minimize"}, [{"metric": "heat", "max": 2}], (1.0, 1.0)),
        ({"near": "minimize", "heat": "maximize"}, [], (1.0, -3.0)),
        (
            {"near": "minimize", "heat": "maximize"},
            [{"metric": "near", "max": 3}],
            (1.0, -3.0, -2.0),
        ),
    ],
)
def test_several_objectives_and_limits_are_several_outcomes(
    modes: dict[str, str], limits: list[dict[str, JsonValue]], outcome: object
) -> None:
    tuner = GPTuner(seed=0)
    tuner.set_objectives(objectives_of(modes, limits))
    tuner.update_search_space(LINE)

    tuner.receive_trial_result(0, {"x": 0.5}, {"near": 1.0, "heat": 3.0, "default": 1.0})

    ((_, found),) = tuner.state()["observed"]
    assert found == outcome


def test_refuses_costs_of_several_outcomes() -> None:
    with pytest.raises(ValueError, match="cost_aware"):
        GPTuner(cost_aware=True).set_objectives(
            objectives_of({"near": "minimize"}, [{"metric": "heat", "max": 2}])
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"kappa": 0},
        {"xi": 0},
        {"nu": 0.001},
        {"alpha": 0},
        {"cold_start_num": 1},
        {"selection_num_warm_up": 1},
        {"selection_num_starting_points": 1},
        {"ask_time_limit": 0},
        {"ask_time_limit": math.inf},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(GPTuner(**arguments), GPTuner)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cost_budget": 0},
        {"cost_budget": -1},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        GPTuner(**arguments)
