"""Ranges that an objective suggests."""

from typing import Any

import pytest

from nni.hpo.search.suggested_ranges import SuggestedRange, float_range, int_range, options_of
from nni.hpo.space.parser import parse_space

RANGES: list[tuple[SuggestedRange, list[Any]]] = [
    (float_range("a", 0.5, 2, None, log=False), [0.5, 1.25, 2.0]),
    (float_range("a", 1e-3, 1, None, log=True), [1e-3, 0.1, 1.0]),
    (float_range("a", 0.1, 1, 0.1, log=False), [0.1, 0.3, 1.0]),
    (float_range("a", 3, 3, None, log=False), [3.0]),
    (int_range("a", -2, 5, 1, log=False), [-2, 0, 5]),
    (int_range("a", 1, 9, 3, log=False), [1, 4, 7]),
    (int_range("a", 1, 64, 1, log=True), [1, 8, 64]),
    (int_range("a", 7, 7, 1, log=True), [7]),
    (options_of("a", ["sgd", None, 1, True, 2.5]), ["sgd", None, 1, True, 2.5]),
]


@pytest.mark.parametrize(("values", "examples"), RANGES)
def test_values_survive_their_code(values: SuggestedRange, examples: list[Any]) -> None:
    decoded = [values.decode(values.encode(example)) for example in examples]

    assert decoded == examples
    assert [type(one) for one in decoded] == [type(one) for one in examples]


@pytest.mark.parametrize(("values", "examples"), RANGES)
def test_codes_and_values_lie_in_search_spaces(values: SuggestedRange, examples: list[Any]) -> None:
    codes, declared = (parse_space({"a": one}) for one in (values.entry, values.declared))

    assert all(codes.allows({"a": values.encode(example)}) for example in examples)
    assert all(declared.allows({"a": example}) for example in examples)


@pytest.mark.parametrize(
    ("values", "outside"),
    [
        (float_range("a", 0, 1, None, log=False), 1.5),
        (float_range("a", 0, 1, None, log=False), True),
        (float_range("a", 0, 1, None, log=False), float("nan")),
        (float_range("a", 0, 1, 0.25, log=False), 0.3),
        (int_range("a", 1, 9, 2, log=False), 2),
        (int_range("a", 1, 9, 2, log=False), 11),
        (int_range("a", 1, 9, 2, log=False), 10**400),
        (int_range("a", 1, 9, 1, log=True), 1.5),
        (options_of("a", [1]), True),
    ],
)
def test_values_outside_are_refused(values: SuggestedRange, outside: object) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        values.encode(outside)


def test_step_ends_at_or_below_the_upper_bound() -> None:
    assert float_range("a", 0, 1, 0.4, log=False).decode(2) == 0.8
    assert str(float_range("a", 0, 1, 0.4, log=False)) == "[0.0, 0.8] in steps of 0.4"


@pytest.mark.parametrize(
    ("low", "high", "step", "text"),
    [
        (2, 3, 0.5, "[2.0, 3.0] in steps of 0.5"),
        (-1, 1, 0.75, "[-1.0, 0.5] in steps of 0.75"),
        (0.1, 1, 0.1, "[0.1, 1.0] in steps of 0.1"),
    ],
)
def test_steps_are_counted_from_the_lower_bound(
    low: float, high: float, step: float, text: str
) -> None:
    values = float_range("a", low, high, step, log=False)

    assert str(values) == text
    with pytest.raises(ValueError, match="must lie in"):
        values.encode(high + step)


@pytest.mark.parametrize(
    ("low", "high", "step", "log", "named"),
    [
        (2, 1, None, False, "low"),
        (0, float("inf"), None, False, "high"),
        (0, 10**400, None, False, "high"),
        (0, 1, 0, False, "step"),
        (1, 2, 0.5, True, "step"),
        (0, 1, None, True, "low"),
    ],
)
def test_wrong_range_names_the_argument(
    low: float, high: float, step: float | None, log: bool, named: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{named} of 'a'"):
        float_range("a", low, high, step, log=log)


def test_integers_must_be_integers() -> None:
    with pytest.raises(ValueError, match=r"high of 'a' must be an integer, got 2\.5"):
        int_range("a", 1, 2.5, 1, log=False)  # type: ignore[arg-type]  # the error is tested


@pytest.mark.parametrize(
    ("low", "high", "step", "log", "named"),
    [
        (2, 1, 1, False, "low"),
        (1, 2, 0, False, "step"),
        (1, 9, 2, True, "step"),
        (0, 9, 1, True, "low"),
        (1, 9, -1, False, "step"),
    ],
)
def test_wrong_range_of_integers_names_the_argument(
    low: int, high: int, step: int, log: bool, named: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{named} of 'a'"):
        int_range("a", low, high, step, log=log)


@pytest.mark.parametrize(
    ("values", "kind", "content"),
    [
        (int_range("a", -2, 5, 1, log=False), "randint", [-2, 6]),
        (int_range("a", 1, 9, 3, log=False), "choice", [1, 4, 7]),
        (float_range("a", 1, 3, 1, log=False), "choice", [1.0, 2.0, 3.0]),
        (float_range("a", 0.1, 0.3, 0.1, log=False), "choice", [0.1, 0.2, 0.3]),
    ],
)
def test_stepped_values_are_declared_as_a_user_would(
    values: SuggestedRange, kind: str, content: list[float]
) -> None:
    assert values.declared == {"_type": kind, "_value": content}


def test_options_must_differ() -> None:
    with pytest.raises(ValueError, match="must differ, got 1 twice"):
        options_of("a", [1, 2, 1])
    with pytest.raises(ValueError, match="must not be empty"):
        options_of("a", [])


def test_options_of_another_type_are_others() -> None:
    assert options_of("a", [1]) != options_of("a", [True])
    assert options_of("a", [[1]]) == options_of("a", ([1],))


def test_options_of_another_number_are_others() -> None:
    assert options_of("a", [1]) != options_of("a", [1, 2])
    assert options_of("a", [1, 2]) != options_of("a", [1])
    assert options_of("a", [1]) != object()


def test_equal_options_have_the_same_hash_though_they_cannot_be_hashed() -> None:
    assert hash(options_of("a", [[1], {}])) == hash(options_of("b", ([1], {})))


@pytest.mark.parametrize(
    ("values", "entry"),
    [
        (float_range("a", 0.5, 2, None, log=False), {"_type": "uniform", "_value": [0.5, 2.0]}),
        (float_range("a", 0.5, 2, None, log=True), {"_type": "loguniform", "_value": [0.5, 2.0]}),
        (float_range("a", 0, 0.3, 0.1, log=False), {"_type": "randint", "_value": [0, 4]}),
        (int_range("a", 1, 9, 3, log=False), {"_type": "randint", "_value": [0, 3]}),
        (int_range("a", 1, 64, 1, log=True), {"_type": "qloguniform", "_value": [1, 64, 1]}),
        (options_of("a", ["x", "y"]), {"_type": "choice", "_value": [0, 1]}),
    ],
)
def test_tuner_searches_the_codes(values: SuggestedRange, entry: dict[str, Any]) -> None:
    assert values.entry == entry


@pytest.mark.parametrize(
    ("values", "codes", "decoded"),
    [
        (float_range("a", 0.5, 2, None, log=False), [0.4, 0.7, 2.1], [0.5, 0.7, 2.0]),
        (int_range("a", 2, 64, 1, log=True), [1.2, 8.4, 8.6, 64.9], [2, 8, 9, 64]),
    ],
)
def test_number_of_a_tuner_is_rounded_and_clipped_to_the_range(
    values: SuggestedRange, codes: list[float], decoded: list[float]
) -> None:
    assert [values.decode(code) for code in codes] == decoded


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (float_range("a", 0.5, 2, None, log=False), "[0.5, 2.0]"),
        (float_range("a", 0.5, 2, None, log=True), "[0.5, 2.0] log"),
        (int_range("a", 1, 64, 1, log=True), "[1, 64] log, integers"),
        (int_range("a", 1, 9, 3, log=False), "[1, 7] in steps of 3"),
        (options_of("a", ["x", 1]), "one of ['x', 1]"),
    ],
)
def test_range_is_named_in_errors(values: SuggestedRange, text: str) -> None:
    with pytest.raises(ValueError, match="must lie in") as raised:
        values.encode(-5)

    assert str(raised.value) == f"must lie in {text}, got -5"


@pytest.mark.parametrize(("value", "code"), [(0.1 + 0.2, 2), (1 - 1e-12, 9)])
def test_value_that_differs_by_rounding_is_at_its_step(value: float, code: int) -> None:
    assert float_range("a", 0.1, 1, 0.1, log=False).encode(value) == code


@pytest.mark.parametrize("value", [0.3 + 1e-6, 1.1, 0.0, float("inf")])
def test_value_between_or_beyond_the_steps_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        float_range("a", 0.1, 1, 0.1, log=False).encode(value)
