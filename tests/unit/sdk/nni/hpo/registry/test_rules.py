"""Rules: what they accept, and how they word it."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from nni.hpo.registry.rules import (
    MANY,
    AbsoluteFile,
    AnyValue,
    Boolean,
    FloatRange,
    IntAbove,
    IntRange,
    Modes,
    OneOf,
    PathText,
    PositiveNumbers,
    Rule,
    Text,
    TunerList,
    WholeNumber,
)

HERE = str(Path(__file__).resolve())


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (IntRange(1, 9), [1, 9], [0, 10, 1.0, True, "1", None]),
        (IntRange(0), [0, 10**30], [-1, 0.5, False]),
        (WholeNumber(1), [1, 1e5, 10**400], [0, 1.5, math.inf, math.nan, True, "1"]),
        (FloatRange(0, 1), [0, 1, 0.5], [-0.1, 1.1, math.nan, True, "0.5"]),
        (FloatRange(0, 1, open_low=True, open_high=True), [0.5], [0, 1]),
        (FloatRange(0), [0, 1e300], [math.inf, -1, 10**400]),
        (FloatRange(0, infinite=True), [0, math.inf], [-math.inf, math.nan]),
        (FloatRange(), [-1e300, 0, 1e300], [-math.inf, math.inf]),
        (TunerList(), [["TPE"], ("TPE",)], ["TPE", {"name": "TPE"}, None]),
        (OneOf("a", "b"), ["a", "b"], ["c", "A", 1, None, ["a"]]),
        (Boolean(), [True, False], [0, 1, "yes", None]),
        (PathText(), ["a", "/b/c"], ["", 1, None]),
        (AbsoluteFile(), [HERE], ["a.pcs", "/no/such/file", "", None]),
        (PositiveNumbers(), [[1.2, 0.8], (1,)], [[], [0], [math.inf], [True], "12", None]),
        (Modes(), ["maximize", {"a": "minimize"}], ["max", {}, {"a": "up"}, None]),
        (Text(), ["", "x"], [1, None, ["x"]]),
        (AnyValue(), [None, 1, "x"], []),
    ],
)
def test_rule_separates_good_values_from_bad_ones(
    rule: Rule, good: list[object], bad: list[object]
) -> None:
    assert [value for value in good if not rule.accepts(value, {})] == []
    assert [value for value in bad if rule.accepts(value, {})] == []


@pytest.mark.parametrize(
    "rule",
    [
        IntRange(1, 9),
        WholeNumber(2),
        IntAbove("low", or_equal=True),
        FloatRange(0, open_low=True),
        OneOf("a", hint="b"),
        Modes(),
        Text(),
    ],
)
def test_repr_of_a_rule_builds_it(rule: Rule) -> None:
    assert eval(repr(rule), {**globals(), "inf": math.inf}) == rule


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (FloatRange(0, 1), "in [0, 1]"),
        (FloatRange(0, 1, open_low=True), "in (0, 1]"),
        (FloatRange(0, open_low=True), "> 0"),
        (FloatRange(2), ">= 2"),
        (FloatRange(), ""),
        (FloatRange(0, 1, open_high=True), "in [0, 1)"),
        (FloatRange(high=2), "in [-inf, 2]"),
        (IntRange(3), ">= 3"),
        (IntRange(1, 9), "in [1, 9]"),
        (WholeNumber(2), ">= 2"),
        (IntAbove("low"), "> low"),
        (IntAbove("low", or_equal=True), ">= low"),
        (OneOf("a", "b"), "a | b"),
    ],
)
def test_range_of_a_rule_is_readable(rule: Rule, text: str) -> None:
    assert rule.range == text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (IntRange(1, 9), "an int in [1, 9]"),
        (WholeNumber(2), "a whole number >= 2"),
        (IntAbove("low"), "an int > low"),
        (FloatRange(0, 1, open_low=True), "a number in (0, 1]"),
        (FloatRange(), "a number"),
        (OneOf("a", "b"), "one of 'a', 'b'"),
    ],
)
def test_text_of_a_rule_names_the_type_and_the_range(rule: Rule, text: str) -> None:
    assert rule.text == text


def test_remedy_of_a_relation_names_the_other_argument() -> None:
    assert IntAbove("low").hint == "raise it, or lower low"


def test_or_equal_relation_accepts_the_same_value() -> None:
    rule = IntAbove("low", or_equal=True)

    assert rule.accepts(3, {"low": 3})
    assert not rule.accepts(2, {"low": 3})


def test_rules_are_importable_without_numpy() -> None:
    program = (
        "import sys, nni.hpo.registry.rules\n"
        "assert not {'numpy', 'scipy', 'grpc', 'pydantic'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0


@pytest.mark.parametrize(("value", "accepted"), [(2**31 - 1, True), (2**31, False)])
def test_count_without_another_limit_fits_into_32_bits(value: int, accepted: bool) -> None:
    assert IntRange(1, MANY).accepts(value, {}) is accepted
    assert IntAbove("low").accepts(value, {"low": 1}) is accepted


def test_relation_without_equality_refuses_the_same_value() -> None:
    assert not IntAbove("low").accepts(3, {"low": 3})
    assert IntAbove("low").accepts(4, {"low": 3})
