"""Grammar of annotations: from the text of a string literal to a value.

```
@nni.variable(nni.<type>(arguments), name=<target>)
@nni.function_choice(<call>, <call>, ..., name=<function>)
@nni.report_intermediate_result(<expression>)
@nni.report_final_result(<expression>)
```
"""

import ast
import math
from dataclasses import dataclass
from typing import Final, TypeAlias

from nni.annotation.errors import AnnotationSyntaxError
from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import ALL_TYPES

PREFIX: Final = "@nni."
"""First characters of every annotation."""

_REPORTS: Final = ("report_intermediate_result", "report_final_result")
_KINDS: Final = ("variable", "function_choice", *_REPORTS)
_LONGEST_SHOWN: Final = 100
"""Characters of an annotation that an error repeats."""
_ATOMS: Final = (
    ast.Attribute,
    ast.Call,
    ast.Constant,
    ast.Dict,
    ast.List,
    ast.Name,
    ast.Set,
    ast.Subscript,
    ast.Tuple,
)
"""Expressions that keep their meaning beside `if` and `else` without parentheses of their own."""


@dataclass(frozen=True, slots=True)
class Option:
    """Option of a choice: source text, and its value if that is a literal that JSON keeps."""

    text: str
    """Source of the argument, on one line; an option of the search space if it is an expression."""
    literal: JsonValue = None
    """Value of the argument, if `is_literal`."""
    is_literal: bool = False
    """True if the search space holds the value itself. What JSON would change (a tuple, a set) or
    would take for a sub-space (a dict) is an expression."""
    is_atom: bool = True
    """True if it can stand in a larger expression without parentheses."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Parsed `@nni.variable`: the next assignment's value is replaced by a tuned one."""

    name: str
    """The target of the assignment, as normalised source."""
    type: str
    """A `_type` of the search space."""
    options: tuple[Option, ...]
    """The arguments of the type: options of a choice, else numbers."""


@dataclass(frozen=True, slots=True)
class FunctionChoice:
    """Parsed `@nni.function_choice`: a call in the next statement is one of several calls."""

    name: str
    """The function whose call is replaced, as normalised source."""
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Parsed `@nni.report_*_result`: report of a metric at this place of the code."""

    function: str
    """Name of the function of the trial API."""
    text: str
    """Source of the metric, on one line."""


Annotation: TypeAlias = Variable | FunctionChoice | Report


def is_annotation(text: str) -> bool:
    """Return True if a string literal that stands alone is an annotation; spaces are ignored."""
    return text.strip().startswith(PREFIX)


def parse_annotation(text: str) -> Annotation:
    """Parse an annotation's text to a variable, function choice or report; raise if malformed.

    Raises:
        AnnotationSyntaxError: it breaks a rule.
    """
    source = text.strip().removeprefix("@")
    try:
        call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise AnnotationSyntaxError(
            f"an annotation must be one call in Python ({reason}), got {_shown(text)}"
        ) from error
    kind = _function(call)
    if not isinstance(call, ast.Call) or kind not in _KINDS:
        known = ", ".join(f"@nni.{known}(...)" for known in _KINDS)
        raise AnnotationSyntaxError(f"an annotation must be one of {known}; got {_shown(text)}")
    if kind == "variable":
        return _variable(call, source)
    if kind == "function_choice":
        return _function_choice(call, source)
    return _report(call, kind, source)


def _shown(text: str) -> str:
    stripped = text.strip()
    return repr(stripped if len(stripped) <= _LONGEST_SHOWN else stripped[:_LONGEST_SHOWN] + "...")


def _function(call: ast.expr) -> str | None:
    """Return the name `f` of a call `nni.f(...)`, None for any other expression."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    return call.func.attr if isinstance(owner, ast.Name) and owner.id == "nni" else None


def _variable(call: ast.Call, source: str) -> Variable:
    target = _name(call, "@nni.variable", "learning_rate")
    if len(call.args) != 1:
        raise AnnotationSyntaxError(
            "@nni.variable must have one type before name=, such as nni.uniform(0, 1); "
            f"got {len(call.args)}"
        )
    sampling = call.args[0]
    kind = _function(sampling)
    if kind not in ALL_TYPES:
        raise AnnotationSyntaxError(
            f"the type of a variable must be one of nni.{', nni.'.join(ALL_TYPES)}; "
            f"got {ast.unparse(sampling)}"
        )
    assert isinstance(sampling, ast.Call)
    options = _arguments(sampling, f"nni.{kind}", source)
    if kind != "choice":
        for option in options:
            _check_number(option, kind)
    return Variable(target, kind, options)


def _check_number(option: Option, kind: str) -> None:
    if isinstance(option.literal, bool) or not isinstance(option.literal, int | float):
        raise AnnotationSyntaxError(
            f"the arguments of nni.{kind} must be numbers written out, because the search space "
            f"is made before any trial runs; got {option.text}"
        )


def _function_choice(call: ast.Call, source: str) -> FunctionChoice:
    function = _name(call, "@nni.function_choice", "max_pool")
    options = _arguments(call, "@nni.function_choice", source)
    for argument in call.args:
        if not isinstance(argument, ast.Call):
            raise AnnotationSyntaxError(
                "an option of @nni.function_choice must be a complete call, such as "
                f"max_pool(layer, 2); got {ast.unparse(argument)}"
            )
    return FunctionChoice(function, options)


def _report(call: ast.Call, kind: str, source: str) -> Report:
    if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
        raise AnnotationSyntaxError(
            f"@nni.{kind} must have exactly one argument, the metric; got {ast.unparse(call)}"
        )
    text = _one_line(call.args[0], source)
    # Alone among its kind, `yield` is no argument without parentheses.
    bare = isinstance(call.args[0], ast.Yield | ast.YieldFrom)
    return Report(kind, f"({text})" if bare else text)


def _name(call: ast.Call, owner: str, example: str) -> str:
    """Return the target that `name=` gives, the only keyword allowed."""
    names = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    if len(names) != len(call.keywords):
        wrong = next(keyword.arg or "**" for keyword in call.keywords if keyword.arg != "name")
        raise AnnotationSyntaxError(f"{owner} must have no keyword but name=, got {wrong}=")
    if not names:
        raise AnnotationSyntaxError(f"{owner} must have a name, for example name={example}")
    if not isinstance(names[0], ast.Name | ast.Attribute | ast.Subscript):
        raise AnnotationSyntaxError(
            f"name= of {owner} must be a name as it stands in the code, for example "
            f"name={example}; got {ast.unparse(names[0])}"
        )
    return ast.unparse(names[0])


def _arguments(call: ast.Call, owner: str, source: str) -> tuple[Option, ...]:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if starred or (call.keywords and owner.startswith("nni.")):
        raise AnnotationSyntaxError(
            f"the arguments of {owner} must be written out one by one, without * and keywords"
        )
    if not call.args:
        raise AnnotationSyntaxError(f"{owner} must have at least one argument")
    return tuple(_option(argument, source) for argument in call.args)


def _option(node: ast.expr, source: str) -> Option:
    text = _one_line(node, source)
    is_atom = isinstance(node, _ATOMS)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Option(text, is_atom=is_atom)
    if not _survives_json(value):
        return Option(text, is_atom=is_atom)
    return Option(text, value, is_literal=True, is_atom=is_atom)


def _survives_json(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_survives_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _one_line(node: ast.expr, source: str) -> str:
    """Return the source of a node as its author wrote it if that is one line."""
    text = ast.get_source_segment(source, node)
    return text if text is not None and "\n" not in text else ast.unparse(node)
