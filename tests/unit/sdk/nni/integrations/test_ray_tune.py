import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")
tune = pytest.importorskip("ray.tune")
cloudpickle = pytest.importorskip("cloudpickle")

from ray.tune.search import ConcurrencyLimiter, Searcher  # noqa: E402

from nni.integrations import NNISearch  # noqa: E402 - needs the library

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SPACE = {"x": tune.uniform(-1, 1), "net": {"act": tune.choice(["far", "near"])}, "epochs": 2}


def loss_of(config: dict[str, Any]) -> float:
    return float(config["x"] ** 2 + (config["net"]["act"] == "far"))


def search_of(tuner: str = "TPE", space: Any = SPACE, **options: Any) -> NNISearch:
    search = NNISearch(tuner=tuner, seed=0, **options)
    assert search.set_search_properties("loss", "min", space)
    return search


def run(search: NNISearch, count: int, first: int = 0) -> list[dict[str, Any]]:
    configs = []
    for number in range(first, first + count):
        config = search.suggest(str(number))
        assert isinstance(config, dict)
        search.on_trial_complete(str(number), {"loss": loss_of(config)})
        configs.append(config)
    return configs


def test_results_teach_the_tuner() -> None:
    search = search_of()

    configs = run(search, 40)

    assert min(map(loss_of, configs[20:])) < 0.01
    assert search.best_config == min(configs, key=loss_of)


def test_maximize_looks_for_the_largest_result() -> None:
    search = NNISearch({"x": {"_type": "uniform", "_value": [0, 1]}}, "TPE", metric="m", mode="max")
    for number in range(40):
        config = search.suggest(str(number))
        assert isinstance(config, dict)
        search.on_trial_complete(str(number), {"m": config["x"]})

    assert search.best_config is not None
    assert search.best_config["x"] > 0.95


def test_several_metrics_are_several_objectives() -> None:
    search = NNISearch(tuner="auto", metric=["loss", "cost"], mode=["min", "max"], seed=0)
    assert search.set_search_properties(None, None, SPACE)
    for number in range(5):
        config = search.suggest(str(number))
        assert isinstance(config, dict)
        search.on_trial_complete(str(number), {"loss": config["x"], "cost": -config["x"]})

    assert search.best_config is None


def test_configurations_to_evaluate_come_first() -> None:
    points = [{"x": 0.25, "net": {"act": "near"}}, {"x": -0.5, "net": {"act": "far"}, "epochs": 9}]

    first, second, _ = run(search_of(points_to_evaluate=points), 3)

    assert first == points[0]
    assert second == {"x": -0.5, "net": {"act": "far"}}


def test_results_from_elsewhere_are_learned_and_failures_left_out() -> None:
    search = search_of()
    search.add_evaluated_point({"x": 0.001, "net": {"act": "near"}}, 1e-6)
    search.add_evaluated_point({"x": 0.0, "net": {"act": "near"}}, math.nan, error=True)
    search.add_evaluated_point({"x": 0.0, "net": {"act": "near"}}, -9, pruned=True)

    assert search.best_config == {"x": 0.001, "net": {"act": "near"}}
    with pytest.raises(ValueError, match="must have 'x'"):
        search.add_evaluated_point({"net": {"act": "near"}}, 1)


@pytest.mark.parametrize(
    ("result", "error"), [(None, True), ({}, False), ({"loss": math.nan}, False), (None, False)]
)
def test_a_trial_without_a_result_is_closed(result: dict[str, Any] | None, error: bool) -> None:
    search = search_of()
    search.suggest("a")

    search.on_trial_complete("a", result, error)
    search.on_trial_complete("a", {"loss": 1.0})  # again: nothing
    search.on_trial_complete("unknown", {"loss": 1.0})

    assert search.best_config is None
    assert isinstance(search.suggest("b"), dict)


def test_a_tuner_without_further_proposals_finishes_the_search() -> None:
    search = search_of("GridSearch", {"act": tune.choice(["a", "b"])})

    assert [search.suggest("a"), search.suggest("b")] == [{"act": "a"}, {"act": "b"}]
    assert search.suggest("c") is None  # results of open trials may matter
    search.on_trial_complete("a", {"loss": 1})
    search.on_trial_complete("b", {"loss": 2})
    assert search.suggest("c") == Searcher.FINISHED


def test_a_saved_search_goes_on_as_if_it_had_not_ended(tmp_path: Path) -> None:
    search = search_of()
    run(search, 25)
    search.suggest("open")
    search.save(str(tmp_path / "state"))

    before, after = NNISearch(tuner="TPE", seed=1), search_of()
    before.restore(str(tmp_path / "state"))
    assert before.set_search_properties("loss", "min", SPACE)
    after.restore(str(tmp_path / "state"))

    for one in (search, before, after):
        one.on_trial_complete("open", {"loss": 0.5})
    assert run(before, 3, 30) == run(after, 3, 30) == run(search, 3, 30)


def test_a_copy_in_another_process_has_the_state() -> None:
    search = search_of()
    run(search, 25)

    copied = cloudpickle.loads(cloudpickle.dumps(search))

    assert run(copied, 2, 30) == run(search, 2, 30)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: search_of("Tpee"), "Tpee"),
        (lambda: NNISearch().suggest("a"), "a search space must be given"),
        (lambda: NNISearch().set_search_properties(None, None, SPACE), "metric and mode must be"),
        (lambda: search_of(points_to_evaluate=[{"x": 7, "net": {"act": "far"}}]), "x"),
        (
            lambda: NNISearch(metric=["a", "b"], mode=["min", "min"]).add_evaluated_point({}, 1),
            "a search space must be given",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_a_trial(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_second_space_is_not_taken() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}

    assert not NNISearch(space).set_search_properties("loss", "min", SPACE)
    assert NNISearch(space).set_search_properties("loss", "min", {})
    assert not search_of().set_search_properties("loss", "min", SPACE)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
@pytest.mark.timeout(600)  # each trial is a process that imports Ray
def test_a_tuner_of_ray_runs_and_restores_the_search(tmp_path: Path) -> None:
    failed = tmp_path / "failed"

    def objective(config: dict[str, Any]) -> dict[str, float]:
        if not failed.exists():
            failed.touch()
            raise RuntimeError("lost once")
        return {"loss": loss_of(config)}

    tuner = tune.Tuner(
        objective,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=3,
            search_alg=ConcurrencyLimiter(NNISearch(tuner="TPE", seed=0), max_concurrent=1),
        ),
        run_config=tune.RunConfig(name="search", storage_path=str(tmp_path), verbose=0),
    )
    found = tuner.fit()
    assert (len(found), found.num_errors) == (3, 1)
    assert all(one.config["epochs"] == 2 for one in found)

    restored = tune.Tuner.restore(str(tmp_path / "search"), objective, restart_errored=True).fit()

    assert (len(restored), restored.num_errors) == (3, 0)
    assert restored.get_best_result().metrics["loss"] <= found.get_best_result().metrics["loss"]
