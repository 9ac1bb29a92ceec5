"""Reading "pcs new" files."""

from pathlib import Path

import pytest

from nni.hpo.advisors._pcs import Comparison, Condition, PcsError, parse_pcs, read_pcs

TEXT = """\
# all kinds
kernel categorical {rbf, linear} [rbf]   # an option
size ordinal { small , large } [small]
degree integer [1, 5] [3]
gamma real [1e-4, 10] [0.1] log

Conditionals:
gamma | kernel in {rbf}
degree | kernel == linear && size > small || gamma < 1

Forbidden:
{kernel=linear, degree=5}
"""


def test_parameters_are_read() -> None:
    kernel, size, degree, gamma = parse_pcs(TEXT).parameters

    assert (kernel.name, kernel.kind, kernel.options) == (
        "kernel",
        "categorical",
        ("rbf", "linear"),
    )
    assert (kernel.low, kernel.high, kernel.log, kernel.default) == (0, 0, False, "rbf")
    assert (size.low, size.high, size.log) == (0, 0, False)
    assert (size.kind, size.options, size.default) == ("ordinal", ("small", "large"), "small")
    assert (degree.options, degree.log, gamma.default) == ((), False, 0.1)
    assert (degree.kind, degree.low, degree.high, degree.default) == ("integer", 1, 5, 3)
    assert (gamma.kind, gamma.low, gamma.high, gamma.log) == ("real", 1e-4, 10, True)


def test_conditions_are_read_as_alternatives_of_comparisons() -> None:
    first, second = parse_pcs(TEXT).conditions

    assert first == Condition("gamma", ((Comparison("kernel", "in", ("rbf",)),),))
    assert second.alternatives == (
        (Comparison("kernel", "==", ("linear",)), Comparison("size", ">", ("small",))),
        (Comparison("gamma", "<", (1.0,)),),
    )


def test_forbidden_combinations_are_read() -> None:
    assert parse_pcs(TEXT).forbidden == ((("kernel", "linear"), ("degree", 5.0)),)


def test_parameter_may_be_declared_after_its_condition() -> None:
    pcs = parse_pcs("b | a != x\nb real [0, 1] [0]\na categorical {x, y} [x]\n")

    assert pcs.conditions == (Condition("b", ((Comparison("a", "!=", ("x",)),),)),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file declares no parameter"),
        ("a float [0, 1] [0]", "1: cannot read"),
        ("a real [0, 1] [2]", "1: 'a' needs low <= default <= high"),
        ("a real [zero, 1] [1]", "1: 'zero' is no number"),
        ("a real [0, 1] [1] log", "1: low of 'a' must be > 0"),
        ("a integer [0, 1.5] [1]", "1: bounds and default of 'a' must be integers"),
        ("a categorical {} [x]", "1: options of 'a' must be"),
        ("a categorical {x, x} [x]", "1: options of 'a' must be distinct"),
        ("a categorical {x} [y]", "1: default of 'a' must be an option"),
        ("a real [0, 1] [0]\na real [0, 1] [0]", "2: parameter 'a' is declared twice"),
        ("a real [0, 1] [0]\nb | a == 1", "2: parameter 'b' is not declared"),
        ("a real [0, 1] [0]\na | b == 1", "2: parameter 'b' is not declared"),
        ("a real [0, 1] [0]\na | ", "2: cannot read the condition"),
        ("a categorical {x} [x]\nb real [0, 1] [0]\nb | a == z", "3: 'z' is no option of 'a'"),
        ("a categorical {x} [x]\nb real [0, 1] [0]\nb | a < x", "3: 'a' is categorical"),
        ("a real [0, 1] [0]\n{a=1", "2: a forbidden combination must end"),
        ("a real [0, 1] [0]\n{a}", "2: a forbidden clause must be name=value"),
        ("a real [0, 1] [0]\n{}", "2: a forbidden combination must not be empty"),
        ("a real [0, 1] [0]\nb real [0, 1] [0]\na | b > 0\nb | a > 0", "form a cycle among a, b"),
    ],
)
def test_wrong_lines_are_named(text: str, reason: str) -> None:
    with pytest.raises(PcsError) as caught:
        parse_pcs(text, "space.pcs")

    assert str(caught.value).startswith("space.pcs:")
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["", "a real [0, 1] [0]\nb real [0, 1] [0]\na | b > 0\nb | a > 0"])
def test_errors_of_the_whole_text_name_no_line(text: str) -> None:
    with pytest.raises(PcsError, match=r"^space\.pcs: "):
        parse_pcs(text, "space.pcs")


@pytest.mark.parametrize(
    "line",
    [
        "a real [1, 1] [1]",
        "a real [0, 1] [1]",
        "a real [0, 1] [0]",
        "a real [1e-9, 1] [1] log",
        "a real [0.5, 1.5] [1]",
        "a categorical {x} [x]",
    ],
)
def test_edges_of_what_a_parameter_may_be_are_accepted(line: str) -> None:
    assert len(parse_pcs(line).parameters) == 1


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.pcs"
    path.write_text("what is this\n")

    with pytest.raises(PcsError, match=r"broken\.pcs:1: cannot read 'what is this'"):
        read_pcs(path)
