from __future__ import annotations

import pytest

from svc_trial_runner.fleet.adapters.json_answers import AnswerError, JsonPart


def test_texts_of_an_object_are_returned_with_its_other_fields() -> None:
    part = JsonPart("the API", {"id": "a", "reason": None, "size": 3})

    assert part.checked(("id",), ("reason", "state")) == {"id": "a", "reason": None, "size": 3}


@pytest.mark.parametrize("value", [None, "", 7, ["a"]])
def test_needed_text_that_is_missing_or_empty_names_its_path(value: object) -> None:
    (item,) = JsonPart("the API", [{"name": value}], "data").items()

    with pytest.raises(AnswerError, match=r"the API .* data\[0\]\.name must be a text that is not"):
        item.checked(("name",))


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (-9, -9), (None, None)])
def test_integer_may_be_missing(value: object, expected: int | None) -> None:
    assert JsonPart("the API", {"code": value}).field("code").integer() == expected


@pytest.mark.parametrize("value", ["1", 1.5, True, [1]])
def test_value_that_is_no_integer_is_named(value: object) -> None:
    with pytest.raises(AnswerError, match="code must be an integer, got"):
        JsonPart("the API", {"code": value}).field("code").integer()


def test_long_value_is_cut() -> None:
    with pytest.raises(AnswerError) as caught:
        JsonPart("the API", "a" * 10_000).fields()

    assert len(caught.value.message) < 250


def test_value_is_shown_by_its_first_80_characters() -> None:
    with pytest.raises(AnswerError) as caught:
        JsonPart("the API", "a" * 100).items()

    assert caught.value.message.endswith(f"the whole must be a list, got '{'a' * 79}")
