from __future__ import annotations

from typing import Any

import pytest

from nni.annotation.errors import AnnotationSyntaxError
from nni.annotation.grammar import (
    FunctionChoice,
    Report,
    Variable,
    is_annotation,
    parse_annotation,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@nni.variable(nni.uniform(0, 1), name=x)", True),
        ("\n  @nni.report_final_result(x)\n", True),
        ("a docstring that mentions @nni.variable", False),
        ("nni.variable", False),
        ("", False),
    ],
)
def test_annotation_is_known_by_its_start(text: str, expected: bool) -> None:
    assert is_annotation(text) is expected


@pytest.mark.parametrize(
    ("sampling", "kind", "values"),
    [
        ("nni.choice(1, 2.5, 'a', None, True)", "choice", [1, 2.5, "a", None, True]),
        ("nni.choice([1, 'b'], [2, ['c']])", "choice", [[1, "b"], [2, ["c"]]]),
        ("nni.randint(-1, 4)", "randint", [-1, 4]),
        ("nni.uniform(0.1, 0.5)", "uniform", [0.1, 0.5]),
        ("nni.quniform(0, 10, 2.5)", "quniform", [0, 10, 2.5]),
        ("nni.loguniform(1e-5, 1E-1)", "loguniform", [1e-5, 0.1]),
        ("nni.qloguniform(1, 100, 1)", "qloguniform", [1, 100, 1]),
        ("nni.normal(0, 1)", "normal", [0, 1]),
        ("nni.qnormal(0, 1, 0.5)", "qnormal", [0, 1, 0.5]),
        ("nni.lognormal(0, 1)", "lognormal", [0, 1]),
        ("nni.qlognormal(0, 1, 2)", "qlognormal", [0, 1, 2]),
    ],
)  # fmt: skip
def test_variable_has_each_of_the_ten_types(sampling: str, kind: str, values: list[Any]) -> None:
    found = parse_annotation(f"@nni.variable({sampling}, name=x)")

    assert isinstance(found, Variable)
    assert (found.name, found.type) == ("x", kind)
    assert all(option.is_literal for option in found.options)
    assert [option.literal for option in found.options] == values
    assert [type(option.literal) for option in found.options] == [type(value) for value in values]


@pytest.mark.parametrize(
    "source",
    ["base * 2", "(1, 2)", "{'a': 1}", "{1}", "b'x'", "1e999", "math.pi", "[(1,)]", "1 + 2"],
)
def test_option_that_json_would_change_is_an_expression(source: str) -> None:
    found = parse_annotation(f"@nni.variable(nni.choice({source}, 0), name=x)")

    assert isinstance(found, Variable)
    assert not found.options[0].is_literal
    assert found.options[0].text == source


@pytest.mark.parametrize(
    ("written", "name"),
    [("lr", "lr"), ("self.lr", "self.lr"), ("o['lr']", "o['lr']"), ('o["lr"]', "o['lr']")],
)
def test_name_is_any_single_target(written: str, name: str) -> None:
    found = parse_annotation(f"@nni.variable(nni.uniform(0, 1), name={written})")

    assert isinstance(found, Variable)
    assert found.name == name


def test_function_choice_keeps_calls_as_text() -> None:
    found = parse_annotation(
        "@nni.function_choice(max_pool(h, 2), avg_pool(\n    h,\n    size=3), name=max_pool)"
    )

    assert isinstance(found, FunctionChoice)
    assert found.name == "max_pool"
    assert [option.text for option in found.options] == ["max_pool(h, 2)", "avg_pool(h, size=3)"]


@pytest.mark.parametrize("function", ["report_intermediate_result", "report_final_result"])
def test_report_has_one_expression(function: str) -> None:
    assert parse_annotation(f"@nni.{function}(a + b)") == Report(function, "a + b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@nni.variable(nni.uniform(0, 1), name=x", "must be one call in Python"),
        ("@nni.tune(3)", "must be one of @nni.variable"),
        ("@nni.variable", "must be one of @nni.variable"),
        ("@nni.variable(nni.uniform(0, 1))", "must have a name"),
        ("@nni.variable(name=x)", "must have one type before name="),
        ("@nni.variable(nni.uniform(0, 1), nni.uniform(0, 1), name=x)", "got 2"),
        ("@nni.variable(nni.triangle(0, 1), name=x)", r"must be one of nni\.choice"),
        ("@nni.variable(uniform(0, 1), name=x)", r"must be one of nni\.choice"),
        ("@nni.variable(3, name=x)", r"must be one of nni\.choice.*got 3"),
        ("@nni.variable(nni.uniform(0, high), name=x)", "must be numbers written out.*got high"),
        ("@nni.variable(nni.uniform(0, True), name=x)", "must be numbers written out"),
        ("@nni.variable(nni.uniform(low=0, high=1), name=x)", r"without \* and keywords"),
        ("@nni.variable(nni.choice(*options), name=x)", r"without \* and keywords"),
        ("@nni.variable(nni.choice(), name=x)", "must have at least one argument"),
        ("@nni.variable(nni.uniform(0, 1), name='x')", "as it stands in the code"),
        ("@nni.variable(nni.uniform(0, 1), name=(x, y))", "as it stands in the code"),
        ("@nni.variable(nni.uniform(0, 1), name=x, q=1)", "no keyword but name=, got q="),
        ("@nni.function_choice(f, g, name=f)", "must be a complete call.*got f"),
        ("@nni.function_choice(name=f)", "must have at least one argument"),
        ("@nni.function_choice(f(1), g(1))", "must have a name"),
        ("@nni.report_final_result()", "must have exactly one argument"),
        ("@nni.report_final_result(a, b)", "must have exactly one argument"),
        ("@nni.report_final_result(*a)", "must have exactly one argument"),
        ("@nni.report_final_result(metric=a)", "must have exactly one argument"),
    ],
)
def test_broken_rule_is_named(text: str, message: str) -> None:
    with pytest.raises(AnnotationSyntaxError, match=message):
        parse_annotation(text)
