import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from nni.hpo import LogUniform, RandInt, TPETuner
from nni.integrations import NNISearchCV

SAMPLES, TARGETS = load_iris(return_X_y=True)
NOT_FOR_SEARCHES = (
    "check_array_api",  # needs a package and a variable
    "check_supervised_y_2d",  # GridSearchCV of the same estimator fails it, too
)
SMALL = NNISearchCV(
    Ridge(),
    {"alpha": LogUniform(0.1, 1)},
    n_iter=1,
    tuner="Random",
    cv=2,
    error_score="raise",  # of the estimator, whose messages are checked
)
CHECKS = [
    pytest.param(estimator, check, id=check.func.__name__)
    for estimator, check in estimator_checks_generator(SMALL, mark=None)
    if not check.func.__name__.startswith(NOT_FOR_SEARCHES)
]


def search(**words: Any) -> NNISearchCV:
    given: dict[str, Any] = {
        "estimator": GaussianNB(),
        "param_distributions": {"var_smoothing": LogUniform(1e-9, 10)},
        "n_iter": 6,
        "tuner": "TPE",
        "cv": 3,
        "random_state": 0,
    }
    return NNISearchCV(**{**given, **words})


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_search_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    assert check(estimator) is None  # it raises otherwise


def test_fitted_search_has_the_attributes_of_a_randomized_search() -> None:
    found = search().fit(SAMPLES, TARGETS)

    results = found.cv_results_
    assert len(results["params"]) == 6
    assert found.best_params_ == results["params"][found.best_index_]
    assert found.best_score_ == results["mean_test_score"].max()
    assert results["rank_test_score"][found.best_index_] == 1
    assert found.score(SAMPLES, TARGETS) > 0.9
    assert list(found.classes_) == [0, 1, 2]


def test_a_seed_repeats_the_search() -> None:
    first, second, other = (search(random_state=seed).fit(SAMPLES, TARGETS) for seed in (3, 3, 4))

    assert first.cv_results_["params"] == second.cv_results_["params"]
    assert first.cv_results_["params"] != other.cv_results_["params"]


def test_more_jobs_find_the_same() -> None:
    with joblib.parallel_backend("threading"):
        one, two = (search(n_jobs=jobs, n_iter=3).fit(SAMPLES, TARGETS) for jobs in (1, 2))

    assert one.cv_results_["params"] == two.cv_results_["params"]


def test_the_tuner_learns_from_the_scores() -> None:
    # Neighbours from 1 to 149: only few of them are good, and TPE must find them.
    found = search(
        estimator=KNeighborsClassifier(),
        param_distributions={"n_neighbors": RandInt(1, 100)},
        n_iter=25,
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(SAMPLES, TARGETS)

    scores = found.cv_results_["mean_test_score"]
    assert np.mean(scores[15:]) > np.mean(scores[:10])


def test_search_is_cloned_pickled_and_part_of_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), clone(search()))

    pipeline.fit(SAMPLES, TARGETS)
    copied = pickle.loads(pickle.dumps(pipeline))

    assert (copied.predict(SAMPLES) == pipeline.predict(SAMPLES)).all()


def test_search_tunes_steps_of_a_pipeline_and_the_steps_themselves() -> None:
    found = search(
        estimator=make_pipeline(StandardScaler(), LogisticRegression()),
        param_distributions={
            "standardscaler": ["passthrough", StandardScaler()],
            "logisticregression": [GaussianNB(), DummyClassifier()],
        },
        tuner="GridSearch",
    ).fit(SAMPLES, TARGETS)

    assert len(found.cv_results_["params"]) == 4
    assert isinstance(found.best_params_["logisticregression"], GaussianNB)


def test_one_of_several_dicts_is_used() -> None:
    found = search(
        param_distributions=[{"var_smoothing": [0.1]}, {"priors": [[0.2, 0.3, 0.5]]}],
        tuner="GridSearch",
    ).fit(SAMPLES, TARGETS)

    assert found.cv_results_["params"] == [{"var_smoothing": 0.1}, {"priors": [0.2, 0.3, 0.5]}]


def test_refit_names_the_score_that_is_maximised() -> None:
    found = search(scoring=["accuracy", "neg_log_loss"], refit="neg_log_loss").fit(SAMPLES, TARGETS)

    assert found.best_score_ == found.cv_results_["mean_test_neg_log_loss"].max()
    assert "mean_test_accuracy" in found.cv_results_


def test_several_scores_need_the_name_of_one() -> None:
    several = search(scoring=["accuracy", "neg_log_loss"], refit=False)

    with pytest.raises(ValueError, match=r"one of the scores accuracy, neg_log_loss, got None"):
        several.fit(SAMPLES, TARGETS)
    assert several.set_params(objective="accuracy").fit(SAMPLES, TARGETS).multimetric_


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite:UserWarning")
def test_a_fit_that_fails_is_not_learned() -> None:
    failing = search(
        param_distributions={"var_smoothing": [-1.0, 1e-9]},
        tuner="GridSearch",
        batch_size=2,
    )

    with pytest.warns(Warning, match="3 fits failed out of a total of 6"):
        failing.fit(SAMPLES, TARGETS)
    assert failing.best_params_ == {"var_smoothing": 1e-9}


def test_a_tuner_object_is_not_changed() -> None:
    tuner = TPETuner(optimize_mode="maximize", seed=1)

    first, second = (search(tuner=tuner, n_iter=3).fit(SAMPLES, TARGETS) for _ in range(2))

    assert first.cv_results_["params"] == second.cv_results_["params"]


def test_successive_halving_gives_more_samples_to_fewer_candidates() -> None:
    found = search(n_iter=9, resource="n_samples", min_resources=15).fit(SAMPLES, TARGETS)

    results = found.cv_results_
    assert list(results["n_resources"]) == [16] * 9 + [50] * 3 + [150]
    assert list(results["iter"]) == [0] * 9 + [1] * 3 + [2]
    assert found.best_index_ == 12
    best_of_the_first = np.argmax(results["mean_test_score"][:9])
    assert results["params"][best_of_the_first] in results["params"][9:12]


def test_successive_halving_of_a_parameter_sets_it() -> None:
    found = search(
        estimator=DecisionTreeClassifier(random_state=0),
        param_distributions={"min_samples_leaf": RandInt(1, 20)},
        n_iter=4,
        resource="max_depth",
        max_resources=4,
        factor=2,
    ).fit(SAMPLES, TARGETS)

    assert [one["max_depth"] for one in found.cv_results_["params"]] == [1] * 4 + [2] * 2 + [4]
    assert found.best_estimator_.get_depth() <= 4


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"n_iter": 0}, "n_iter"),
        ({"tuner": "Nothing"}, "Nothing"),
        ({"resource": "trees"}, "resource must be 'n_samples' or a parameter"),
        ({"resource": "var_smoothing"}, "max_resources must be a number"),
        ({"resource": "n_samples", "factor": 1}, "factor must be > 1, got 1"),
        ({"resource": "n_samples", "max_resources": 151}, "<= 150 must hold, got 18 and 151"),
    ],
    ids=["n_iter", "tuner", "resource", "most", "factor", "samples"],
)
def test_a_wrong_argument_is_named(words: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        search(**words).fit(SAMPLES, TARGETS)
