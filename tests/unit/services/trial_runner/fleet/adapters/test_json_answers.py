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


def test_long_value_is_cut() -> None:
    with pytest.raises(AnswerError) as caught:
        JsonPart("the API", "a" * 10_000).fields()

    assert len(caught.value.message) < 250
