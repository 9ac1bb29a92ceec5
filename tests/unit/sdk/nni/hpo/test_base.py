"""Contracts of tuners and assessors, and validation of their answers."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from nni.assessor import Assessor, AssessResult
from nni.errors import NniError, NoMoreTrialError
from nni.hpo.base import DEFERRED, Generated, Sample, assess, generate, samples
from nni.hpo.search.study import Study
from nni.tuner import Tuner


class Listing(Tuner):
    """Tuner that proposes the numbers below a limit and records its results."""

    def __init__(self, limit: int = 100) -> None:
        self.limit = limit
        self.calls: list[tuple[Any, ...]] = []

    def update_search_space(self, search_space: Any) -> None:
        self.calls.append(("space", search_space))

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        self.calls.append(("generate", parameter_id))
        if len([c for c in self.calls if c[0] == "generate"]) > self.limit:
            raise NoMoreTrialError
        return {"number": parameter_id}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        self.calls.append(("result", parameter_id, parameters, value))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.calls.append(("end", parameter_id, success))


class Bulk(Listing):
    """Answers with whatever it is given."""

    def __init__(self, answer: Callable[[list[int]], Any]) -> None:
        super().__init__()
        self.answer = answer

    def generate_multiple_parameters(self, parameter_id_list: list[int], **kwargs: Any) -> Any:
        return self.answer(parameter_id_list)


@pytest.mark.claim("hpo", 41)
def test_callbacks_come_in_the_documented_order_with_matching_ids() -> None:
    tuner = Listing(limit=1)
    study = Study({"any": "thing"}, tuner=tuner)
    trial = study.ask()

    study.tell(trial, {"default": 0.5, "other": [1]})

    assert tuner.calls == [
        ("space", {"any": "thing"}),
        ("generate", 0),
        ("result", 0, {"number": 0}, {"default": 0.5, "other": [1]}),
        ("end", 0, True),
    ]


@pytest.mark.claim("hpo", 41)
def test_no_more_trial_error_ends_the_list_and_keeps_what_there_is() -> None:
    answer = generate(Listing(limit=2), [5, 6, 7, 8])

    assert answer == Generated(((5, {"number": 5}), (6, {"number": 6})), (), exhausted=True)


@pytest.mark.claim("hpo", 42)
@pytest.mark.parametrize("items", [[], ["only one"]])
def test_shorter_list_without_deferral_means_no_more_trials(items: list[Any]) -> None:
    answer = generate(Bulk(lambda _ids: items), [1, 2])

    assert answer.exhausted
    assert [configuration for _, configuration in answer.parameters] == items


def test_no_more_trial_error_for_the_whole_list_means_no_more_trials() -> None:
    def refuse(_ids: list[int]) -> Any:
        raise NoMoreTrialError

    assert generate(Bulk(refuse), [1, 2]) == Generated((), (), exhausted=True)


def test_deferred_ids_are_no_sign_of_the_end() -> None:
    answer = generate(Bulk(lambda _ids: [DEFERRED, {"x": 1}, DEFERRED]), [1, 2, 3])

    assert answer == Generated(((2, {"x": 1}),), (1, 3), exhausted=False)


def test_deferring_tuner_gets_the_callable_that_serves_later() -> None:
    served: list[tuple[int, Any]] = []

    class Later(Listing):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            self.start_later = kwargs["st_callback"]
            return DEFERRED

    tuner = Later()
    answer = generate(tuner, [4], lambda parameter_id, value: served.append((parameter_id, value)))
    tuner.start_later(4, {"x": 1})

    assert answer.deferred == (4,)
    assert served == [(4, {"x": 1})]


@pytest.mark.parametrize("items", [None, "ab", {"x": 1}, [1, 2, 3]])
def test_answer_that_is_no_list_of_at_most_the_ids_is_an_error(items: Any) -> None:
    with pytest.raises(TypeError, match="list of at most 2"):
        generate(Bulk(lambda _ids: items), [1, 2])


def test_other_exceptions_of_a_tuner_pass_through() -> None:
    def fail(_ids: list[int]) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        generate(Bulk(fail), [1])


def test_tuner_that_overrides_no_generate_method_says_so() -> None:
    class Silent(Listing):
        generate_parameters = Tuner.generate_parameters

    with pytest.raises(TypeError, match="must override generate_parameters"):
        generate(Silent(), [1])


def test_configuration_may_be_any_json_value() -> None:
    answer = generate(Bulk(lambda _ids: [None, "text", 0]), [1, 2, 3])

    assert [configuration for _, configuration in answer.parameters] == [None, "text", 0]


def test_import_that_a_tuner_does_not_override_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Listing().import_data([{"parameter": 1, "value": 2}])

    assert "ignores 1 imported samples" in caplog.text


def test_no_more_trial_error_is_an_error_of_the_library() -> None:
    assert issubclass(NoMoreTrialError, NniError)


class Fixed(Assessor):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        return self.answer


def test_assess_result_has_the_documented_values() -> None:
    assert AssessResult.Good.value is True
    assert AssessResult.Bad.value is False


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (AssessResult.Bad, AssessResult.Bad),
        (True, AssessResult.Good),
        (False, AssessResult.Bad),
        (None, AssessResult.Good),
        (0, AssessResult.Good),
    ],
)
def test_assessor_answers_are_read_with_care(answer: Any, result: AssessResult) -> None:
    assert assess(Fixed(answer), "trial", [1]) is result


def test_odd_assessor_answer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assess(Fixed("bad"), "abc", [1])

    assert "must return an AssessResult" in caplog.text
    assert "abc" in caplog.text


def test_well_formed_samples_are_read_in_order() -> None:
    data = [{"parameter": {"x": 1}, "value": 2, "more": 3}, {"parameter": [1]}]

    assert list(samples(data)) == [Sample({"x": 1}, 2), Sample([1], None)]


def test_other_items_are_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    assert list(samples([{"value": 1}, 3, {"parameter": 1, "value": 1}])) == [Sample(1, 1)]
    assert caplog.text.count("must be a dict with 'parameter'") == 2


def test_data_that_is_no_list_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert list(samples({"parameter": 1})) == []
    assert "must be a list" in caplog.text


def test_tuner_that_declares_nothing_learns_plain_results_alone() -> None:
    tuner = Listing()

    declared = (
        tuner.lookahead,
        tuner.multi_objective,
        tuner.imports_failures,
        tuner.learns_stopped,
        tuner.learns_durations,
    )

    assert declared == (False, False, False, False, False)
