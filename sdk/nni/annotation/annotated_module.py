"""Parser of one annotated Python file: its annotations, and its converted text.

Every line keeps its number: tracebacks of a trial point into the original file as well.
"""

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from nni.annotation.errors import AnnotationError, AnnotationSyntaxError
from nni.annotation.grammar import (
    FunctionChoice,
    Option,
    Report,
    Variable,
    is_annotation,
    parse_annotation,
)
from nni.annotation.source_text import Edit, Position, SourceText, span
from nni.hpo.json_value import JsonValue

RUNTIME: Final = "__nni__"
"""Name of the runtime in converted code; dunder on both sides, so that classes do not mangle it."""
_START: Final = f"import nni.annotation.runtime as {RUNTIME}; {RUNTIME}.fetch()"

_COMPOUND: Final = (
    ast.AsyncFor,
    ast.AsyncFunctionDef,
    ast.AsyncWith,
    ast.ClassDef,
    ast.For,
    ast.FunctionDef,
    ast.If,
    ast.Match,
    ast.Try,
    ast.TryStar,
    ast.While,
    ast.With,
)
"""Statements that must begin their line."""

_FORMATTED: Final[tuple[type[ast.AST], ...]] = (
    ast.JoinedStr,
    getattr(ast, "TemplateStr", ast.JoinedStr),  # since 3.14
)

_Statements: TypeAlias = Sequence[ast.stmt]


@dataclass(frozen=True, slots=True)
class Hyperparameter:
    """Annotated hyperparameter: name, type, options, and the span of code that it replaces."""

    line: int
    """Number of the first line of the annotation."""
    name: str
    """Variable or function, as written in the code."""
    type: str
    """`_type` of the parameter in the search space."""
    options: tuple[Option, ...]
    start: Position
    """Position of the expression that it replaces."""
    end: Position

    def wire_values(self) -> list[JsonValue]:
        """Return its `_value` in the search space: literals, and the texts of expressions."""
        return [wire for wire, _ in self._wired()]

    def expression(self, key: str) -> str:
        """Return Python source that looks up this hyperparameter's value at run time.

        Options that are expressions are evaluated where they stand, and only the chosen one.
        """
        quoted = json.dumps(key, ensure_ascii=False)
        choices: dict[str, str] = {}
        for wire, option in self._wired():
            if not option.is_literal:
                code = option.text if option.is_atom else f"({option.text})"
                text = json.dumps(wire, ensure_ascii=False)
                choices.setdefault(wire, f"{code} if {RUNTIME}.is_chosen({quoted}, {text}) else ")
        has_literals = any(option.is_literal for option in self.options)
        rest = "value" if has_literals else "no_such_option"
        code = "".join(choices.values()) + f"{RUNTIME}.{rest}({quoted})"
        return f"({code})" if choices else code

    def _wired(self) -> Iterator[tuple[JsonValue, Option]]:
        """Yield each option with its value in the search space: a literal, or its source text.

        An expression whose text is also a literal string of this choice is put in parentheses.
        """
        strings = {option.literal for option in self.options if isinstance(option.literal, str)}
        for option in self.options:
            if option.is_literal:
                yield option.literal, option
            else:
                text = option.text
                while text in strings:
                    text = f"({text})"
                yield text, option


@dataclass(frozen=True, slots=True)
class _Metric:
    """Annotation that reports a metric, with its position in the file."""

    report: Report
    start: Position
    end: Position


class AnnotatedModule:
    """Parsed Python file with the NNI annotations found in it, converted on request.

    Args:
        path: inside the code directory; for errors and for keys.
        content: the file's bytes.

    Raises:
        AnnotationError: the file is no Python, or an annotation in it breaks a rule.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        try:
            self._source = SourceText.decode(content)
            self._tree = self._source.parse()
        except SyntaxError as error:
            raise AnnotationError(path, error.lineno or 0, f"is not Python: {error.msg}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise AnnotationError(path, 0, f"is not Python: {error}") from error
        self._metrics: list[_Metric] = []
        found = [one for block in _blocks(self._tree) for one in self._read(block)]
        self.hyperparameters = tuple(sorted(found, key=lambda one: (one.line, one.start.column)))

    @property
    def name(self) -> str:
        """The module's name with its packages, such as `models.resnet`."""
        return ".".join(self.path.with_suffix("").parts)

    @property
    def is_annotated(self) -> bool:
        """True if the file holds an annotation; a mention in a comment does not count."""
        return bool(self.hyperparameters or self._metrics)

    def converted(self, keys: Sequence[str]) -> bytes:
        """Return the file's bytes with annotations replaced by look-ups and reports, for a trial.

        Args:
            keys: the names in the search space, in the order of `hyperparameters`.

        Raises:
            AnnotationError: an expression is not legal where its annotation stands, or there are
                thousands of them.
        """
        edits = [
            Edit(one.start, one.end, one.expression(key))
            for one, key in zip(self.hyperparameters, keys, strict=True)
        ]
        for metric in self._metrics:
            code = f"{RUNTIME}.{metric.report.function}({metric.report.text})"
            edits.append(Edit(metric.start, metric.end, code))
        start = self._start()
        edited = self._source.edited([*edits, start])
        try:
            edited.check()
            return edited.encode()
        except SyntaxError as error:
            line = (error.lineno or 0) - start.text.count("\n")
            reason = f"what an annotation puts here is not Python in this place: {error.msg}"
            raise AnnotationError(self.path, line, reason) from error
        except RecursionError as error:
            reason = (
                "a choice must have fewer options that are expressions: Python cannot nest them"
            )
            raise AnnotationError(self.path, 0, reason) from error
        except UnicodeEncodeError as error:
            reason = f"what an annotation says must be written in the file's encoding: {error}"
            raise AnnotationError(self.path, 0, reason) from error

    def _read(self, statements: _Statements) -> Iterator[Hyperparameter]:
        """Yield the hyperparameters of one block; store its reports in `_metrics`."""
        for statement, following in zip(statements, [*statements[1:], None], strict=True):
            text = _literal(statement)
            if text is None or not is_annotation(text):
                continue
            try:
                annotation = parse_annotation(text)
                if isinstance(annotation, Report):
                    assert isinstance(statement, ast.Expr)
                    self._metrics.append(_Metric(annotation, *span(statement.value)))
                else:
                    yield _hyperparameter(annotation, statement.lineno, following)
            except AnnotationSyntaxError as error:
                raise AnnotationError(self.path, statement.lineno, str(error)) from error

    def _start(self) -> Edit:
        """Return the edit that inserts the fetching of parameters before the first statement.

        It stands behind docstring and `__future__` imports: on a blank line if there is one, else
        beside a statement. Only where neither is possible does it get a line of its own.
        """
        position = Position(1, 0)
        index = 0
        while index < len(self._tree.body) and _must_come_first(self._tree.body, index):
            _, position = span(self._tree.body[index])
            index += 1
        following = self._tree.body[index] if index < len(self._tree.body) else None
        first_line = _first_line(following) if following is not None else position.line
        for line in range(position.line if index == 0 else position.line + 1, first_line):
            if self._source.is_blank(line):
                return Edit(Position(line, 0), Position(line, 0), _START)
        if index > 0:
            return Edit(position, position, f"; {_START}")
        assert following is not None
        place = Position(first_line, 0)
        end = "\n" if isinstance(following, _COMPOUND) else "; "
        return Edit(place, place, _START + end)


def _blocks(tree: ast.Module) -> Iterator[_Statements]:
    """Yield every list of statements, nested ones too."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                yield block


def _literal(statement: ast.stmt) -> str | None:
    """Return the text of a string literal that stands alone, None for any other statement."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        text = statement.value.value
        return text if isinstance(text, str) else None
    return None


def _must_come_first(body: _Statements, index: int) -> bool:
    statement = body[index]
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    text = _literal(statement)
    return index == 0 and text is not None and not is_annotation(text)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _hyperparameter(
    annotation: Variable | FunctionChoice, line: int, following: ast.stmt | None
) -> Hyperparameter:
    if isinstance(annotation, Variable):
        replaced = _assigned_value(annotation.name, following)
        return Hyperparameter(
            line, annotation.name, annotation.type, annotation.options, *span(replaced)
        )
    replaced = _call(annotation.name, following)
    return Hyperparameter(line, annotation.name, "choice", annotation.options, *span(replaced))


def _assigned_value(name: str, statement: ast.stmt | None) -> ast.expr:
    """Return the right side of the assignment to a name; raise if the statement is none."""
    rule = f"@nni.variable(..., name={name}) must stand right before an assignment to {name}"
    if statement is None:
        raise AnnotationSyntaxError(f"{rule}; nothing follows in its block")
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target, value = statement.target, statement.value
    else:
        raise AnnotationSyntaxError(f"{rule}; the next statement is {_first_words(statement)}")
    if ast.unparse(target) != name:
        raise AnnotationSyntaxError(f"{rule}; the next statement assigns to {ast.unparse(target)}")
    return value


def _call(name: str, statement: ast.stmt | None) -> ast.Call:
    """Return the only call of a function in the next statement; raise unless there is one."""
    rule = f"@nni.function_choice(..., name={name}) must stand right before a call of {name}"
    if statement is None:
        raise AnnotationSyntaxError(f"{rule}; nothing follows in its block")
    calls = [
        node
        for node in _expressions(statement)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name
    ]
    if len(calls) != 1:
        shown = f"calls it {len(calls)} times" if calls else f"is {_first_words(statement)}"
        raise AnnotationSyntaxError(f"{rule}; the next statement {shown}")
    return calls[0]


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a statement except nested statements and f-strings.

    In an f-string no code can be replaced before Python 3.12: it may hold no further quotes.
    """
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, *_FORMATTED)):
            yield child
            yield from _expressions(child)


def _first_words(statement: ast.stmt) -> str:
    text, longest = ast.unparse(statement).split("\n", 1)[0], 60
    return repr(text if len(text) <= longest else text[:longest] + "...")
