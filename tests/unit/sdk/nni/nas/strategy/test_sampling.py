import pytest

from nni.mutable import SampleValidationError
from nni.nas.strategy.sampling import (
    DeduplicationHelper,
    DuplicationError,
    RetrySamplingHelper,
    content_key,
)


def test_order_of_labels_does_not_count() -> None:
    assert content_key({"a": [1, {"x": 2}], "b": 3}) == content_key({"b": 3, "a": [1, {"x": 2}]})


@pytest.mark.parametrize(
    ("first", "second"), [(1, True), (1, "1"), ((1, 2), [1, 2]), (int, "int"), (int, float)]
)
def test_values_of_different_types_differ(first: object, second: object) -> None:
    assert content_key({"a": first}) != content_key({"a": second})


def test_removed_samples_are_new_again() -> None:
    helper = DeduplicationHelper()
    helper.dedup({"a": 1})

    helper.remove({"a": 1})
    helper.remove({"a": 2})

    assert helper.dedup({"a": 1})


def test_reset_forgets_all_samples() -> None:
    helper = DeduplicationHelper()
    helper.dedup({"a": 1})

    helper.reset()

    assert helper.dedup({"a": 1})


def test_duplicate_raises_on_request() -> None:
    helper = DeduplicationHelper(raise_on_dup=True)
    helper.dedup({"a": 1})

    with pytest.raises(DuplicationError, match="drawn before"):
        helper.dedup({"a": 1})


def test_state_leaves_out_unfinished_samples() -> None:
    first, second = DeduplicationHelper(), DeduplicationHelper()
    first.dedup({"a": 1})
    first.dedup({"a": 2})

    second.load_state_dict(first.state_dict(without=[{"a": 2}]))

    assert (second.dedup({"a": 1}), second.dedup({"a": 2})) == (False, True)


def failing(error: Exception, times: int, counter: list[int]) -> int:
    counter.append(1)
    if len(counter) <= times:
        raise error
    return len(counter)


def test_draws_are_repeated_until_one_succeeds() -> None:
    assert RetrySamplingHelper(5).retry(failing, SampleValidationError("no"), 4, []) == 5


def test_result_after_the_last_failure_is_none() -> None:
    counter: list[int] = []

    assert RetrySamplingHelper(3).retry(failing, SampleValidationError("no"), 9, counter) is None
    assert len(counter) == 3


def test_last_failure_is_raised_on_request() -> None:
    helper = RetrySamplingHelper(3, raise_last=True)

    with pytest.raises(SampleValidationError, match="no"):
        helper.retry(failing, SampleValidationError("no"), 9, [])


def test_other_errors_propagate() -> None:
    with pytest.raises(OSError, match="disk"):
        RetrySamplingHelper(3).retry(failing, OSError("disk"), 1, [])
