"""Shared studies on a manager in this process."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from threading import Semaphore

import pytest

from nni.errors import NoMoreTrialError
from nni.experiment import SharedStudy
from nni.experiment.errors import LeaseLapsedError, NotFoundError
from nni.hpo import Study
from nni.hpo.search.outcomes import Recommendation
from nni_wire.values import to_value
from tests.support.in_memory_manager import InMemoryManager, in_memory_manager

SPACE = {"x": {"_type": "uniform", "_value": [-1, 100]}}
PATIENCE_S = 60.0
SHORT_LEASE_S = 0.003


@pytest.fixture
def manager(private_home: Path) -> Iterator[InMemoryManager]:
    with in_memory_manager(private_home / "nni") as made:
        yield made


def test_the_first_caller_creates_and_later_ones_join(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE", seed=3) as first, SharedStudy("study") as second:
        assert first.ask().id == 0
        assert second.ask().id == 1
        assert second.search_space == SPACE
        assert second.seed == 3

    (created,) = manager.created
    assert created.experiment_id == "study"
    assert created.config.tuner.name == "TPE"
    assert not created.config.training_services


def test_a_differing_argument_is_an_error_that_names_it(manager: InMemoryManager) -> None:
    SharedStudy("study", SPACE, tuner="TPE").close()

    with pytest.raises(ValueError, match="tuner must be that of the study 'study', 'TPE'"):
        SharedStudy("study", SPACE, tuner="Random")


def test_a_study_that_does_not_exist_cannot_be_joined(manager: InMemoryManager) -> None:
    with pytest.raises(NotFoundError):
        SharedStudy("study")


def test_results_of_all_callers_make_the_best(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE) as first, SharedStudy("study") as second:
        first.tell(first.ask(), 2.0)
        second.tell(second.ask(), 1.0)
        second.tell(second.ask(), None)

        for study in (first, second):
            assert study.best_value == 1.0
            assert study.best_trial.id == 1
            assert study.best_parameters == {"x": 1}
            assert [(trial.id, value) for trial, value in study.results] == [(0, 2.0), (1, 1.0)]
            assert [point.trial.id for point in study.pareto_front] == [1]


def test_the_same_result_again_is_harmless_and_another_one_an_error(
    manager: InMemoryManager,
) -> None:
    with SharedStudy("study", SPACE) as study:
        trial = study.ask()
        study.tell(trial, 1.0)
        study.tell(trial.id, 1.0)

        with pytest.raises(ValueError, match="told before"):
            study.tell(trial, 2.0)


def test_only_the_caller_that_asked_can_tell(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE) as first, SharedStudy("study") as second:
        trial = first.ask()

        with pytest.raises(ValueError, match="trial must be one that this object asked for"):
            second.tell(trial, 1.0)
        with pytest.raises(TypeError, match="value must be a number"):
            first.tell(trial, "good")


def test_a_lapsed_lease_has_an_error_of_its_own(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE) as study:
        trial = study.ask()
        manager.studies.lapse(manager.trials["study"][0])

        with pytest.raises(LeaseLapsedError):
            study.tell(trial, 1.0)


def test_a_trial_whose_lease_is_renewed_while_it_is_told_is_not_lost(
    manager: InMemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    renewals, studies = Semaphore(0), manager.studies
    studies.lease_s, studies.renewed = SHORT_LEASE_S, renewals.release

    def wait_for_renewals() -> None:
        while renewals.acquire(blocking=False):
            pass  # of before
        for _ in range(3):  # one may have begun before; the next ones follow the first's answer
            assert renewals.acquire(timeout=PATIENCE_S)

    with caplog.at_level(logging.WARNING), SharedStudy("study", SPACE) as study:
        told, _other = study.ask(), study.ask()
        studies.told = wait_for_renewals
        study.tell(told, 1.0)

        assert study.best_value == 1.0
    assert "does not hold" not in caplog.text


def test_an_exhausted_or_stopped_study_gives_no_more_trials(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE) as study:
        manager.studies.trial_limit = 0
        with pytest.raises(NoMoreTrialError):
            study.ask()
        manager.studies.trial_limit = 9
        study.stop()
        with pytest.raises(NoMoreTrialError):
            study.ask()
        study.resume()
        assert study.ask().id == 0


def test_a_trial_that_was_evaluated_elsewhere_is_a_result(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE") as study:
        trial = study.add_trial({"x": 0.5}, 0.25)

        assert study.best_trial == trial
        with pytest.raises(ValueError, match="must lie in the search space"):
            study.add_trial({"x": -2}, 1.0)
        with pytest.raises(ValueError, match="must lie in the search space"):
            study.enqueue({"y": 1})
        study.enqueue({"x": 3})
        assert manager.trials["study"][-1].source


def test_a_pickled_study_joins_where_it_is_loaded(manager: InMemoryManager) -> None:
    with (
        SharedStudy("study", SPACE, tuner="TPE") as study,
        pickle.loads(pickle.dumps(study)) as loaded,
    ):
        assert loaded.ask().id == 0
        assert len(manager.created) == 1


def test_a_wrong_name_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ValueError, match="name must be 4 to 32"):
        SharedStudy("My study", SPACE)


def test_the_table_has_a_row_per_result(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE) as study:
        study.tell(study.ask(), 2.0)

        assert "1 trials" in study._repr_html_()


def test_a_copy_is_a_study_here_that_knows_all_results(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE", seed=1) as study, SharedStudy("study") as other:
        open_trial = study.ask()
        for value in (2.0, None, 1.0):
            other.tell(other.ask(), value)

        copied = study.copy()
        study.tell(open_trial, 0.0)

        assert isinstance(copied, Study)
        assert [(trial.parameters, value) for trial, value in copied.results] == [
            ({"x": 1}, 2.0),
            ({"x": 3}, 1.0),
        ]
        asked = copied.ask()
        assert asked.id == 2
        copied.tell(asked, -1.0)
        assert (study.best_value, len(manager.trials["study"])) == (0.0, 4)


def test_the_state_is_for_a_study_with_the_same_arguments(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE", seed=1, optimize_mode="maximize") as study:
        study.tell(study.ask(), 2.0)
        loaded = Study(SPACE, tuner="TPE", seed=1, optimize_mode="maximize")

        loaded.load_state(json.loads(json.dumps(study.state())))

        assert (loaded.best_value, loaded.best_parameters) == (2.0, {"x": 0})
        assert loaded.ask() == study.copy().ask()


def test_the_recommended_trial_is_one_of_the_shared_study(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE") as study:
        study.tell(study.ask(), None)
        study.tell(study.ask(), 2.0)

        assert study.recommended == Recommendation(study.best_trial, 2.0, measured=True)
        assert study.recommended.trial.id == 1


def test_trials_outside_the_search_space_are_not_in_a_copy(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE") as study:
        for value in (3.0, 2.0):
            study.tell(study.ask(), value)
        manager.trials["study"][0].parameters.CopyFrom(to_value({"x": 500}))

        assert [value for _, value in study.copy().results] == [2.0]
        assert study.recommended.trial.id == 1


def test_each_name_of_a_study_is_there_or_says_what_to_use(manager: InMemoryManager) -> None:
    with SharedStudy("study", SPACE, tuner="TPE") as study:
        for name in dir(Study(SPACE)):
            if not name.startswith("_") and not hasattr(type(study), name):
                with pytest.raises(AttributeError, match="as a Study has: "):
                    getattr(study, name)
        with pytest.raises(AttributeError, match=r"has no 'resumee'$"):
            _ = study.resumee  # type: ignore[attr-defined]
