import re

import pytest

from nni.compression.job.field_checks import (
    JobError,
    entries_of,
    fields_of,
    integer_of,
    limit_of,
    name_of,
    named_values,
    text_of,
)


def test_known_fields_are_returned() -> None:
    assert fields_of({"a": 1}, "job", ("a",), ("b",)) == {"a": 1}
    assert named_values({"any": 1}, "job") == {"any": 1}
    assert entries_of([{"a": 1}], "list") == ({"a": 1},)
    assert text_of("ab", "name", re.compile("a"), "an a") == "ab"
    assert name_of("b", "name", ("a", "b")) == "b"
    assert (integer_of(2, "n", 1, 2), limit_of(None, "n"), limit_of(3, "n")) == (2, None, 3)


def test_an_unknown_field_is_named_with_its_place() -> None:
    with pytest.raises(JobError, match=re.escape("a.steps is no field of a job; did you mean")):
        fields_of({"steps": 1}, "a", (), ("step",))
    with pytest.raises(JobError, match="known are a, b"):
        fields_of({"zzz": 1}, "job", (), ("a", "b"))


def test_a_close_name_is_proposed() -> None:
    with pytest.raises(JobError, match="did you mean 'PtqQuantizer'"):
        name_of("PtqQuantiser", "name", ("PtqQuantizer", "x"))


@pytest.mark.parametrize("value", [0, True, 1.5, "1", None])
def test_no_integer_within_the_limits_is_refused(value: object) -> None:
    with pytest.raises(JobError, match="n must be an integer from 1 to 2, got"):
        integer_of(value, "n", 1, 2)
