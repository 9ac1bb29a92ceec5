"""Checks of arguments that several compressors take."""

from nni.compression.base.evaluator import Evaluator


def check_count(name: str, value: object) -> None:
    """Raise TypeError unless a value is an int and no bool, ValueError if it is below 1.

    Args:
        name: name of the argument, for the error.
        value: the value.

    Raises:
        TypeError: it is no int.
        ValueError: it is below 1.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value}")


def check_evaluator(value: object) -> None:
    """Raise TypeError unless a value is an `Evaluator`.

    Args:
        value: the value.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, Evaluator):
        raise TypeError(
            f"evaluator must be an Evaluator, such as TorchEvaluator(...), got {value!r}"
        )
