"""Expression language of constraints."""

from collections.abc import Callable

import pytest

from nni.hpo.space._expression import MOST_CHARACTERS, ExpressionError, parse

NAMES = {
    "a": 3,
    "b": 4.0,
    "word": "sgd",
    "flag": True,
    "nothing": None,
    "pair": [1, 2],
    "model/lr": 0.5,
    "model": "mlp",
    "not": 7,
    "learning-rate": 0.1,
    "true": 2,
}


def holds(text: str, **changes: object) -> bool:
    values = {**NAMES, **changes}
    expression = parse(text, values.keys())
    return expression.holds([values[name] for name in expression.names])


@pytest.mark.parametrize(
    "text",
    [
        "a * b <= 12",
        "a + 2 * b == 11",
        "(a + 2) * b == 20",
        "-a ** 2 == -9",
        "2 ** -1 == 0.5",
        "2 ** 3 ** 2 == 512",
        "a - 1 - 1 == 1",
        "a // 2 == 1 and a % 2 == 1",
        "b / 8 == .5",
        "b == 4 and a != 4",
        "1 < a <= 3 < b",
        "a < 1 or b > 1 and flag",
        "not (a > b)",
        "not not a < b",
        "word == 'sgd'",
        'word != "adam"',
        "word in ['adam', 'sgd',]",
        "word in ('adam', 'sgd')",
        "word not in ['adam']",
        "flag == true and flag == True",
        "flag != false and flag != False",
        "not false and not False",
        "nothing == none and nothing == null",
        "pair == [1, 2]",
        "model/lr < 1 and model == 'mlp'",
        "a/b == 0.75",
        "a/b/b < 1",
        "flag + flag == 2",
        "`not` == 7",
        "`learning-rate` == 1e-1",
        "0.1 + 0.2 <= 0.3",
        "0.1 + 0.2 >= 0.3",
        "not 0.1 + 0.2 > 0.3",
        "flag",
        "`true` == 2",
    ],
)
def test_true_statements(text: str) -> None:
    assert holds(text)


def test_true_and_one_are_different_values() -> None:
    assert not holds("flag == 1")
    assert not holds("word == a")


def test_names_are_in_order_of_first_use() -> None:
    assert parse("b > a and b < 9", {"a", "b"}).names == ("b", "a")


def test_inner_name_wins_over_division_only_where_there_is_one() -> None:
    assert parse("x/y > 1", {"x", "y"}).names == ("x", "y")
    assert parse("x/y > 1", {"x", "y", "x/y"}).names == ("x/y",)
    assert parse("x / y > 1", {"x", "y", "x/y"}).names == ("x", "y")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a value, found the end"),
        ("c > 1", "unknown name 'c' at character 1"),
        ("modle > 1", "did you mean 'model'"),
        ("a = 1", "'=' is written '=='"),
        ("a =< 1", "'=<' is written '<='"),
        ("a && b", "'&&' is written 'and'"),
        ("a || b", "'||' is written 'or'"),
        ("!flag", "'!' is written 'not'"),
        ("a > 1 2", "expected an operator, found '2' at character 7"),
        ("(a > 1", "expected ')', found the end"),
        ("a > ", "expected a value, found the end"),
        ("a > ; 1", "cannot read '; 1' at character 5"),
        ("a.real > 1", "cannot read '.real"),
        ("__import__('os')", "unknown name '__import__'"),
        ("a > 1" + " " * MOST_CHARACTERS, "at most 2000 characters"),
        ("(" * 51 + "a" + ")" * 51, "at most 50 deep"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, NAMES.keys())

    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "must be true or false, got 3"),
        ("a and flag", "must be true or false"),
        ("not a", "must be true or false"),
        ("word > 1", "must be a number"),
        ("word * 2 == 1", "must be a number"),
        ("a in word", "must be followed by a list"),
    ],
)
def test_operands_of_a_wrong_type_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        holds(text)


@pytest.mark.parametrize("text", ["1 / (a - 3) > 0", "(-1) ** 0.5 > a", "10.0 ** 999 > a"])
def test_what_cannot_be_computed_is_an_arithmetic_error(text: str) -> None:
    with pytest.raises(ArithmeticError):
        holds(text)


def test_great_powers_are_no_great_work() -> None:
    with pytest.raises(ArithmeticError):
        holds("9 ** 9 ** 9 > a")
    assert holds("2 ** 64 > a")
    assert holds("a < 2 ** 1000")


@pytest.mark.parametrize(
    ("unit", "last", "comparison"),
    [
        ("a+", "a", " > 0"),
        ("a-", "a", " < 0"),
        ("1*", "a", " > 0"),
        ("1**", "1", " == a - 2"),
        ("-1**", "1", " == 2 - a"),
        ("flag and ", "flag", ""),
        ("a > 9 or ", "flag", ""),
        ("a<=", "a", ""),
    ],
)
def test_longest_chain_of_any_operator_is_evaluated(unit: str, last: str, comparison: str) -> None:
    room = MOST_CHARACTERS - len(last) - len(comparison)

    assert holds(unit * (room // len(unit)) + last + comparison)


def test_chain_costs_what_it_has_operands_and_operators() -> None:
    short, long = parse("a > 1", NAMES), parse("a" + " + a" * 300 + " > 1", NAMES)

    assert short.operations == 4
    assert long.operations == short.operations + 600


@pytest.mark.parametrize("inner", ["a", "-a ** 2 * 3 + 1"])
def test_deepest_parentheses_are_evaluated(inner: str) -> None:
    text = "(" * 49 + inner + ") + 1" * 49 + " != 0"

    assert holds(text)


@pytest.mark.parametrize("before", ["", "(a) + (a) + (a) + "])
def test_parentheses_are_nested_at_most_fifty_deep(before: str) -> None:
    with pytest.raises(ExpressionError, match="nested at most 50 deep"):
        parse(before + "(" * 50 + "a" + ")" * 50 + " != 0", NAMES)


def test_expression_too_deep_for_the_stack_is_an_error_of_the_expression() -> None:
    text = "(" * 48 + "not flag == (1 < -a ** 2 * 3 + 1)" + ")" * 48
    expression = parse(text, NAMES)

    with pytest.raises(ExpressionError, match="nested too deeply"):
        deep(lambda: expression.holds([NAMES[name] for name in expression.names]))


def deep(call: Callable[[], object]) -> object:
    """Call with almost no room left on the stack."""
    try:
        return deep(call)
    except RecursionError:
        return call()


def test_longest_text_is_an_expression() -> None:
    assert holds("a > 1" + " " * (MOST_CHARACTERS - 5))


@pytest.mark.parametrize(
    "text", ["3 ** 64 % 2 == 1", "3 ** 65 % 2 == 0", "9999 ** 5 % 2 == 1", "10001 ** 5 % 2 == 0"]
)
def test_integer_powers_are_exact_up_to_the_base_10000_and_the_exponent_64(text: str) -> None:
    # The float nearest to an odd number above 2 ** 53 is even.
    assert holds(text)
