import pytest

from nni.compression.base.arguments import check_count, check_evaluator


@pytest.mark.parametrize("value", [1, 10**9])
def test_a_count_passes(value: int) -> None:
    assert check_count("steps", value) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    ("value", "error", "problem"),
    [
        (0, ValueError, "steps must be >= 1, got 0"),
        (1.5, TypeError, "steps must be an int, got 1.5"),
        (True, TypeError, "steps must be an int, got True"),
        (None, TypeError, "steps must be an int, got None"),
    ],
)
def test_anything_else_is_no_count(value: object, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        check_count("steps", value)


def test_anything_else_is_no_evaluator() -> None:
    with pytest.raises(TypeError, match=r"evaluator must be an Evaluator, such as .*, got 3"):
        check_evaluator(3)
