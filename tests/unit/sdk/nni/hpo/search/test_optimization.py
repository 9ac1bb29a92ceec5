"""`optimize`."""

import math
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from nni.hpo import (
    Assessor,
    AssessResult,
    Choice,
    MedianstopAssessor,
    RandInt,
    TargetReached,
    TPETuner,
    TrialPruned,
    TrialReporter,
    Uniform,
    configuration,
    importances,
    optimize,
)

SPACE = {"x": {"_type": "uniform", "_value": [-1, 1]}}
GRID = {"x": {"_type": "randint", "_value": [0, 5]}}


def square(parameters: dict[str, Any]) -> float:
    return float((parameters["x"] - 0.3) ** 2)


def test_finds_a_minimum_and_returns_all_trials() -> None:
    result = optimize(square, SPACE, trials=60, seed=0)

    assert result.best_value == square(result.best_parameters) < 1e-4
    assert [record.id for record in result.trials] == list(range(60))
    assert all(record.value == square(record.parameters) for record in result.trials)
    assert {record.status for record in result.trials} == {"SUCCEEDED"}


def test_maximize() -> None:
    result = optimize(lambda p: -square(p), SPACE, trials=60, seed=0, optimize_mode="maximize")

    assert -1e-4 < result.best_value <= 0


def test_same_seed_gives_the_same_trials() -> None:
    first, second = (optimize(square, SPACE, trials=30, seed=5) for _ in range(2))

    assert first == second


def test_stops_when_the_space_is_exhausted() -> None:
    result = optimize(lambda p: p["x"], GRID, tuner="GridSearch", trials=100)

    assert [record.parameters["x"] for record in result.trials] == [0, 1, 2, 3, 4]


def test_dict_results_are_kept_whole() -> None:
    result = optimize(lambda p: {"default": p["x"], "extra": "e"}, GRID, tuner="GridSearch")

    assert result.best_value == 0
    assert result.trials[3].result == {"default": 3, "extra": "e"}


def test_objective_may_take_its_parameters_apart() -> None:
    result = optimize(lambda p: p.pop("x"), GRID, tuner="GridSearch")

    assert [record.parameters for record in result.trials] == [{"x": x} for x in range(5)]


def test_raising_objective_is_a_failed_trial() -> None:
    def objective(parameters: dict[str, int]) -> float:
        return 1 / (parameters["x"] - 1)

    result = optimize(objective, GRID, tuner="GridSearch")

    failed = result.trials[1]
    assert failed.status == "FAILED"
    assert isinstance(failed.error, ZeroDivisionError)
    assert failed.value is None
    assert result.best_value == -1


def test_first_error_is_raised_if_all_trials_fail() -> None:
    def objective(parameters: dict[str, int]) -> float:
        raise KeyError(parameters["x"])

    with pytest.raises(KeyError, match="0"):
        optimize(objective, GRID, tuner="GridSearch")


@pytest.mark.parametrize("result", ["text", None, True, [1.0], {}])
def test_objective_that_returns_no_number_fails(result: object) -> None:
    with pytest.raises(TypeError, match="objective must return a number"):
        optimize(lambda _p: result, GRID, tuner="GridSearch")


@pytest.mark.claim("hpo", 8)
def test_only_infinite_results_are_an_error_that_says_so() -> None:
    with pytest.raises(ValueError, match="none of 5 trials gave a finite number"):
        optimize(lambda _p: float("nan"), GRID, tuner="GridSearch")


def test_concurrent_trials_overlap_and_each_is_counted_once() -> None:
    together = threading.Barrier(3, timeout=10)

    def objective(parameters: dict[str, float]) -> float:
        together.wait()
        return square(parameters)

    result = optimize(objective, SPACE, trials=9, concurrency=3, seed=0)

    assert [record.id for record in result.trials] == list(range(9))


def test_threads_end_with_the_call() -> None:
    before = set(threading.enumerate())

    optimize(square, SPACE, trials=8, concurrency=4, seed=0)

    # Threads of earlier tests may end meanwhile.
    assert set(threading.enumerate()) <= before


def test_no_trial_starts_after_the_timeout() -> None:
    with pytest.raises(ValueError, match="none of 0 trials"):
        optimize(square, SPACE, timeout=1e-9, seed=0)


def curve(parameters: dict[str, float]) -> Iterator[float]:
    """A generator objective: three intermediate results, the last of which is final."""
    for step in (1, 2, 3):
        yield parameters["x"] * step


def test_generator_objective_reports_intermediate_results() -> None:
    result = optimize(curve, GRID, tuner="GridSearch")

    assert result.trials[2].intermediate == (2, 4, 6)
    assert result.trials[2].value == 6
    assert result.best_value == 0


def test_generator_may_return_its_final_result() -> None:
    def objective(parameters: dict[str, int]) -> Generator[int, None, dict[str, int]]:
        yield 7
        return {"default": parameters["x"]}

    result = optimize(objective, GRID, tuner="GridSearch")

    assert [record.value for record in result.trials] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("assessor", ["Medianstop", MedianstopAssessor("minimize")])
def test_assessor_ends_trials_early(assessor: Any) -> None:
    result = optimize(curve, GRID, tuner="GridSearch", assessor=assessor)

    statuses = [record.status for record in result.trials]
    assert statuses == ["SUCCEEDED"] + ["EARLY_STOPPED"] * 4
    assert result.trials[4].intermediate == (4,)
    assert result.trials[4].value is None


def test_failing_assessor_ends_no_trial(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Assessor):
        def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
            raise ZeroDivisionError

    result = optimize(curve, GRID, tuner="GridSearch", assessor=Failing())

    assert {record.status for record in result.trials} == {"SUCCEEDED"}
    assert "assessor failed on trial 0" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"trials": 0}, "trials must be an int >= 1, got 0"),
        ({"concurrency": 0}, "concurrency must be an int >= 1"),
        ({"trials": 1.5}, "trials must be an int >= 1"),
        ({"timeout": 0}, "timeout must be > 0 seconds"),
        ({"assessor": "Median"}, "assessor name must be one of Curvefitting"),
        ({"assessor": "Curvefitting"}, r"epoch_num.*give an object, like nni.hpo.Curvefitting"),
        ({"seed": 1, "tuner_args": {"seed": 2}}, "must equal the argument seed=1"),
    ],
)
def test_bad_arguments_are_refused_before_the_first_trial(
    arguments: dict[str, Any], text: str
) -> None:
    def objective(_parameters: object) -> float:
        raise AssertionError("must not be called")

    with pytest.raises(ValueError, match=text):
        optimize(objective, SPACE, **arguments)


@dataclass
class Point:
    x: Annotated[float, Uniform(-1, 1)]
    y: Annotated[int, RandInt(0, 3)] = 0


def test_objective_of_a_typed_space_gets_objects_of_its_type() -> None:
    seen: list[Point] = []

    def objective(point: Point) -> float:
        seen.append(point)
        return point.x**2 + point.y

    result = optimize(objective, Point, trials=20, seed=0)

    assert result.best_parameters.keys() == {"x", "y"}
    assert {type(point) for point in seen} == {Point}
    assert result.best_value == min(point.x**2 + point.y for point in seen)
    assert configuration(Point, result.best_parameters) in seen


def test_signature_of_the_objective_is_a_search_space() -> None:
    def objective(x: Annotated[float, Uniform(-1, 1)], scale: float = 2.0) -> float:
        return scale * x**2

    alone = optimize(objective, trials=20, seed=0)
    named = optimize(objective, objective, trials=20, seed=0)

    assert alone == named
    assert alone.best_value == 2.0 * alone.best_parameters["x"] ** 2


def test_value_that_only_the_type_refuses_is_a_failed_trial() -> None:
    @dataclass
    class Positive:
        x: Annotated[float, Uniform(-1, 1)]

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x must be >= 0")

    result = optimize(lambda point: point.x, Positive, tuner="Random", trials=20, seed=0)

    assert {record.status for record in result.trials} == {"SUCCEEDED", "FAILED"}
    assert result.best_value >= 0


def test_type_that_describes_no_space_is_refused() -> None:
    with pytest.raises(TypeError, match="must have a default"):
        optimize(lambda x: x)


def test_several_objectives_give_a_front() -> None:
    result = optimize(
        lambda p: {"a": p["x"] ** 2, "b": (p["x"] - 1) ** 2},
        {"x": {"_type": "uniform", "_value": [-2, 2]}},
        optimize_mode={"a": "minimize", "b": "minimize"},
        trials=60,
        seed=0,
    )

    xs = [record.parameters["x"] for record in result.pareto_front]
    # Between the two minima, 0 and 1, no point beats another one; beyond, few are unbeaten.
    assert len([x for x in xs if 0 <= x <= 1]) >= 8
    assert all(-0.2 <= x <= 1.2 for x in xs)
    assert result.best_parameters is None
    assert math.isnan(result.best_value)


def test_limits_on_outcomes_keep_the_search_within() -> None:
    result = optimize(
        lambda p: {"default": p["x"], "cost": p["x"]},
        {"x": {"_type": "uniform", "_value": [0, 1]}},
        optimize_mode="maximize",
        constraints=[{"metric": "cost", "max": 0.5}],
        trials=60,
        seed=0,
    )

    # Draws alone would have half of the trials within, and the best at 0.5 - 1 / 30 on average.
    assert 0.49 < result.best_value <= 0.5


def test_no_trial_within_the_limits_is_an_error() -> None:
    with pytest.raises(ValueError, match="within all constraints"):
        optimize(
            lambda p: {"default": p["x"], "cost": 1},
            {"x": {"_type": "uniform", "_value": [0, 1]}},
            constraints=[{"metric": "cost", "max": 0}],
            trials=3,
        )


def test_a_search_ends_when_it_has_found_enough() -> None:
    result = optimize(
        lambda p: p["x"],
        {"x": {"_type": "uniform", "_value": [0, 1]}},
        stop=TargetReached(0.1),
        enqueue=[{"x": 0.5}, {"x": 0.05}],
        trials=50,
    )

    assert [record.parameters["x"] for record in result.trials] == [0.5, 0.05]
    assert result.stopped_because == "the target 0.1 is reached"


def test_samplings_may_stand_in_a_dict() -> None:
    space = {"x": Uniform(-1, 1), "kind": Choice("a", {"_name": "b", "n": RandInt(1, 3)})}

    result = optimize(square, space, tuner="Random", trials=20, seed=0)

    assert all(-1 <= record.parameters["x"] <= 1 for record in result.trials)
    assert {str(record.parameters["kind"]) for record in result.trials} == {
        "a",
        "{'_name': 'b', 'n': 1}",
        "{'_name': 'b', 'n': 2}",
    }


def test_interrupt_returns_what_is_known() -> None:
    def objective(parameters: dict[str, Any]) -> float:
        if parameters["x"] == 3:
            raise KeyboardInterrupt
        return float(parameters["x"])

    result = optimize(objective, GRID, tuner="GridSearch")

    assert result.interrupted
    assert [record.value for record in result.trials] == [0, 1, 2]
    assert result.best_value == 0


def test_interrupt_before_any_result_is_raised() -> None:
    def objective(_: object) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize(objective, GRID, tuner="GridSearch")


@pytest.mark.parametrize("concurrency", [1, 2])
def test_callbacks_get_the_record_of_each_trial(concurrency: int) -> None:
    seen: list[float | None] = []

    optimize(
        lambda p: p["x"],
        GRID,
        tuner="GridSearch",
        concurrency=concurrency,
        callbacks=[lambda record: seen.append(record.value)],
    )

    assert sorted(value for value in seen if value is not None) == [0, 1, 2, 3, 4]


def test_failed_trial_is_logged_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    optimize(lambda p: 1 / p["x"], GRID, tuner="GridSearch")

    assert "trial 0 failed: ZeroDivisionError: division by zero" in caplog.text


def test_progress_is_a_line_per_trial(capsys: pytest.CaptureFixture[str]) -> None:
    optimize(lambda p: p["x"] / 2, GRID, tuner="GridSearch", trials=2, progress=True)

    assert capsys.readouterr().err == "trial 0: 0 at {'x': 0}\ntrial 1: 0.5 at {'x': 1}\n"


def test_plain_objective_reports_and_stops_by_its_second_argument() -> None:
    class StopAtTwo(Assessor):
        def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
            return AssessResult.Bad if trial_history[-1] >= 2 else AssessResult.Good

    def objective(parameters: dict[str, Any], trial: TrialReporter) -> float:
        for step in range(5):
            trial.report(parameters["x"] * step)
            if trial.should_stop():
                break
        return float(parameters["x"])

    result = optimize(objective, GRID, tuner="GridSearch", assessor=StopAtTwo(), trials=2)

    assert [record.status for record in result.trials] == ["SUCCEEDED", "EARLY_STOPPED"]
    assert [record.intermediate for record in result.trials] == [(0, 0, 0, 0, 0), (0, 1, 2)]


@pytest.mark.parametrize("outside", [{"x": 9}, {"y": 1}, {}])
def test_configuration_outside_the_space_cannot_be_enqueued(outside: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must lie in the search space"):
        optimize(square, GRID, enqueue=[outside])


def test_configuration_of_a_list_can_be_enqueued() -> None:
    space = {"combine_params": {"_type": "choice", "_value": [{"x": 1}, {"x": 2}]}}

    result = optimize(square, space, tuner="BatchTuner", enqueue=[{"x": 0.3}])

    assert result.best_parameters == {"x": 0.3}


class Unsigned:
    """Objective whose parameters cannot be found out, as of a function of another language."""

    __signature__ = "unknown"

    def __init__(self) -> None:
        self.given: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, *arguments: Any, **keywords: Any) -> float:
        self.given.append((arguments, keywords))
        return 1.0


def test_objective_without_a_signature_gets_the_configuration_alone() -> None:
    objective = Unsigned()

    optimize(objective, GRID, tuner="GridSearch", trials=2)

    assert objective.given == [(({"x": 0},), {}), (({"x": 1},), {})]


def test_importances_take_the_result() -> None:
    result = optimize(square, {**SPACE, "y": SPACE["x"]}, tuner="Random", trials=40, seed=0)

    found = importances({"x": Uniform(-1, 1), "y": Uniform(-1, 1)}, result)

    assert found.trials == 40
    assert found.shares["x"] > found.shares["y"]


def test_table_has_a_row_for_each_trial() -> None:
    pytest.importorskip("pandas", reason="makes the table")

    table = optimize(lambda p: p["x"], GRID, tuner="GridSearch").to_dataframe()

    assert list(table.columns) == ["id", "status", "value", "parameters.x"]
    assert list(table["parameters.x"]) == [0, 1, 2, 3, 4]


def test_processes_evaluate_functions_of_a_module() -> None:
    space = {"x": {"_type": "choice", "_value": [1, 2]}}

    result = optimize(len, space, tuner="GridSearch", concurrency=2, processes=True)

    assert [record.value for record in result.trials] == [1, 1]  # one parameter each


def yielding(parameters: dict[str, Any]) -> Generator[float, None, None]:
    yield parameters["x"]


def reporting(parameters: dict[str, Any], trial: TrialReporter) -> float:
    trial.report(parameters["x"])
    return float(parameters["x"])


@pytest.mark.parametrize(
    ("objective", "found"),
    [
        (lambda p: p["x"], "<lambda>, which they cannot import"),
        (yielding, "yielding, a generator"),
        (reporting, "reporting with an argument 'trial'"),
    ],
)
def test_objective_that_other_processes_cannot_call_is_refused(
    objective: Callable[..., Any], found: str
) -> None:
    with pytest.raises(ValueError, match=f"must be a function of a module.*{found}"):
        optimize(objective, GRID, tuner="GridSearch", processes=True)


def test_pruned_trial_is_stopped_early() -> None:
    def objective(parameters: dict[str, int], trial: TrialReporter) -> float:
        trial.report(7)
        if parameters["x"] % 2:
            raise TrialPruned
        return parameters["x"]

    result = optimize(objective, GRID, tuner="GridSearch")

    pruned = result.trials[1]
    assert [one.status for one in result.trials] == [
        *("SUCCEEDED", "EARLY_STOPPED") * 2,
        "SUCCEEDED",
    ]
    assert (pruned.value, pruned.error, pruned.intermediate) == (None, None, (7,))


def refuses_odd_numbers(parameters: dict[str, int]) -> float:
    if parameters["x"] == 1:
        raise LookupError("expected")
    if parameters["x"] == 3:
        raise OSError("not expected")
    return parameters["x"]


def test_exception_outside_of_catch_ends_the_search() -> None:
    ended: list[str] = []

    with pytest.raises(OSError, match="not expected"):
        optimize(
            refuses_odd_numbers,
            GRID,
            tuner="GridSearch",
            catch=LookupError,
            callbacks=[lambda record: ended.append(record.status)],
        )

    assert ended == ["SUCCEEDED", "FAILED", "SUCCEEDED"]


def test_exception_outside_of_catch_in_a_thread_is_raised() -> None:
    with pytest.raises(OSError, match="not expected"):
        optimize(refuses_odd_numbers, GRID, tuner="GridSearch", catch=LookupError, concurrency=2)


def test_catch_must_be_exceptions() -> None:
    with pytest.raises(TypeError, match="catch must be classes of exceptions, got 'all'"):
        optimize(square, SPACE, catch="all")  # type: ignore[arg-type]  # the error is tested


def test_attributes_are_columns_of_the_table() -> None:
    pytest.importorskip("pandas")

    def objective(parameters: dict[str, int], trial: TrialReporter) -> float:
        trial.set_user_attr("double", 2 * parameters["x"])
        return parameters["x"]

    result = optimize(objective, GRID, tuner="GridSearch")

    assert list(result.to_dataframe()["user_attrs.double"]) == [0, 2, 4, 6, 8]


def test_tuner_learns_from_the_trials_that_the_assessor_stops() -> None:
    tuner = TPETuner("minimize", seed=0)

    def training(parameters: dict[str, float]) -> Iterator[float]:
        for epoch in range(4):
            yield parameters["x"] + 1 / (epoch + 1)

    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    found = optimize(training, space, tuner=tuner, assessor="Medianstop", trials=12)

    stopped = [trial for trial in found.trials if trial.status == "EARLY_STOPPED"]
    assert stopped
    assert len(tuner.state()["observed"]) == len(found.trials)
