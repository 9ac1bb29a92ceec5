"""Errors in annotated code, with file and line."""

from pathlib import Path

from nni.errors import NniError


class AnnotationError(NniError, ValueError):
    """Error of an annotation, or a file with one, that breaks a rule: path, line and reason.

    Attributes:
        path: the file, as a path inside the code directory; the directory itself if the fault
            belongs to no file.
        line: counts from 1; 0 if the fault belongs to no line.
        reason: the rule, the offending text, and what to do.
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        place = f"{path}:{line}" if line else str(path)
        super().__init__(f"{place}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class AnnotationSyntaxError(NniError, ValueError):
    """Error: the text of one annotation breaks a rule; the caller adds its position."""
