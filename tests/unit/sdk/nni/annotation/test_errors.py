from pathlib import Path

from nni.annotation.errors import AnnotationError, AnnotationSyntaxError
from nni.errors import NniError


def test_message_names_file_line_and_rule() -> None:
    error = AnnotationError(Path("train.py"), 7, "must name a variable")

    assert str(error) == "train.py:7: must name a variable"
    assert (error.path, error.line, error.reason) == (
        Path("train.py"),
        7,
        "must name a variable",
    )


def test_fault_of_a_folder_has_no_line() -> None:
    assert str(AnnotationError(Path("code"), 0, "is empty")) == "code: is empty"


def test_errors_are_wrong_values_of_the_library() -> None:
    for error in (AnnotationError, AnnotationSyntaxError):
        assert issubclass(error, NniError)
        assert issubclass(error, ValueError)
