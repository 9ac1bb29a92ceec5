import pytest

from nni.experiment.errors import ConfigError, ExperimentError, Problem


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem("port", "must be free"), "port must be free"),
        (Problem("port", "must be >= 1", 0), "port must be >= 1, got 0"),
        (Problem("port", "must be free", 80, "use 0"), "port must be free, got 80 (use 0)"),
    ],
)
def test_problem_is_a_line(problem: Problem, expected: str) -> None:
    assert str(problem) == expected


def test_long_value_is_cut() -> None:
    text = str(Problem("space", "must be a dict", "x" * 1000))

    assert text.endswith("...")
    assert len(text) < 160


@pytest.mark.parametrize(
    ("path", "field", "expected"),
    [("tuner", "name", "tuner.name"), ("list", "[1]", "list[1]"), ("tuner", "", "tuner")],
)
def test_problem_moves_outwards(path: str, field: str, expected: str) -> None:
    assert Problem(field, "must be given").moved(path).field == expected


def test_several_problems_are_counted_and_listed_with_their_file() -> None:
    error = ConfigError([Problem("a", "must be given"), Problem("b", "must be given")])

    assert str(error) == "2 problems:\n  a must be given\n  b must be given"
    assert str(error.within("config.yml")).startswith("config.yml: 2 problems:")
    assert [problem.field for problem in error.moved("tuner").problems] == ["tuner.a", "tuner.b"]


def test_facts_belong_to_the_error() -> None:
    facts = {"field": "port"}
    error = ExperimentError("taken", facts)
    facts.clear()

    assert error.facts == {"field": "port"}
    assert ExperimentError("taken").facts == {}
