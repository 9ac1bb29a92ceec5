"""The batch tuner."""

import json
from typing import Any, ClassVar

import pytest

from nni.algorithms.hpo.batch_tuner import BatchTuner
from nni.errors import NoMoreTrialError

OPTIONS = [
    {"optimizer": "Adam", "lr": 0.1, "flag": True},
    {"optimizer": "SGD", "lr": 0.01, "flag": False},
    {"optimizer": "SGD", "lr": 0.001, "nested": {"a": [1, 2]}},
]


def space(options: object, kind: str = "choice", key: str = "combine_params") -> dict[str, object]:
    return {key: {"_type": kind, "_value": options}}


def rest(tuner: BatchTuner) -> list[dict[str, object]]:
    return tuner.generate_multiple_parameters(list(range(100)))


@pytest.fixture
def tuner() -> BatchTuner:
    tuner = BatchTuner()
    tuner.update_search_space(space(OPTIONS))
    return tuner


@pytest.mark.claim("hpo", 18)
def test_options_come_in_order_and_unchanged_then_no_more(tuner: BatchTuner) -> None:
    assert [tuner.generate_parameters(i) for i in range(3)] == OPTIONS
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(3)


@pytest.mark.claim("hpo", 18)
def test_is_valid_returns_the_list() -> None:
    assert BatchTuner().is_valid(space(OPTIONS)) == OPTIONS


@pytest.mark.claim("hpo", 18)
@pytest.mark.parametrize(
    "bad",
    [
        {"x": {"_type": "uniform", "_value": [0, 1]}},
        space(OPTIONS, kind="uniform"),
        {**space(OPTIONS), "x": {"_type": "choice", "_value": [1]}},
        space([]),
        space(None),
        space([1, 2]),
        space([{"_name": "a"}]),
        {},
        None,
    ],
)
def test_other_spaces_are_invalid(bad: object) -> None:
    assert BatchTuner().is_valid(bad) is None
    with pytest.raises(ValueError, match=r"BatchTuner|combine_params"):
        BatchTuner().update_search_space(bad)


def test_any_one_key_holds_the_list() -> None:
    assert BatchTuner().is_valid(space(OPTIONS, key="params")) == OPTIONS


def test_imported_options_are_taken_off_the_list(tuner: BatchTuner) -> None:
    tuner.import_data([{"parameter": {"flag": False, "lr": 0.01, "optimizer": "SGD"}, "value": 1}])

    assert rest(tuner) == [OPTIONS[0], OPTIONS[2]]


def test_boolean_is_not_taken_for_a_number(tuner: BatchTuner) -> None:
    tuner.import_data([{"parameter": {"flag": 1, "lr": 0.1, "optimizer": "Adam"}, "value": 1}])

    assert len(rest(tuner)) == 3


def test_new_space_repeats_nothing(tuner: BatchTuner) -> None:
    tuner.generate_parameters(0)

    tuner.update_search_space(space([*OPTIONS, {"new": 1}]))

    assert rest(tuner) == [*OPTIONS[1:], {"new": 1}]


def test_option_listed_twice_comes_twice() -> None:
    tuner = BatchTuner()
    tuner.update_search_space(space([{"a": 1}, {"a": 1}]))

    assert rest(tuner) == [{"a": 1}, {"a": 1}]


def test_customized_trials_are_tolerated(tuner: BatchTuner) -> None:
    tuner.receive_trial_result(77, {"x": True}, 1.0, customized=True, trial_job_id="t")
    tuner.trial_end(77, True, trial_job_id="t")

    assert rest(tuner) == OPTIONS


class CountedOption(dict[str, Any]):
    """Option that counts how often one of its kind is read as a whole."""

    reads: ClassVar[int] = 0

    def items(self) -> Any:
        CountedOption.reads += 1
        return super().items()


def test_an_import_in_another_order_reads_each_option_once() -> None:
    tuner = BatchTuner()
    tuner.update_search_space(space([CountedOption(x=number) for number in range(40)]))
    CountedOption.reads = 0

    tuner.import_data([{"parameter": {"x": n}, "value": 0.0} for n in reversed(range(1, 40))])

    assert 0 < CountedOption.reads <= 40
    assert rest(tuner) == [{"x": 0}]


def test_an_import_takes_one_of_equal_options(tuner: BatchTuner) -> None:
    tuner.update_search_space(space([{"x": 0.3}, {"x": 0.3}, {"x": 1}, {"x": 2}]))

    tuner.import_data([{"parameter": {"x": x}, "value": 0} for x in (0.1 + 0.2, 1.0, 0.3, 7)])

    assert rest(tuner) == [{"x": 2}]


def test_may_be_asked_early() -> None:
    assert BatchTuner.lookahead


def test_batch_goes_on_from_its_state(tuner: BatchTuner) -> None:
    tuner.generate_parameters(0)
    tuner.import_data([{"parameter": OPTIONS[2], "value": 1}])
    other = BatchTuner()

    other.load_state(json.loads(json.dumps(tuner.state())))

    assert rest(other) == [OPTIONS[1]]
    other.update_search_space(space(OPTIONS))
    assert rest(other) == []


def test_import_of_what_is_not_listed_takes_nothing_off(tuner: BatchTuner) -> None:
    tuner.import_data([{"parameter": {"optimizer": "other"}, "value": 1}])

    assert rest(tuner) == OPTIONS
