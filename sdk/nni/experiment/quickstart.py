"""Draft of an experiment for a training script, made from the script's text; nothing is run.

Hyperparameters come from `parser.add_argument("--name", type=..., default=...)`; a script with
annotations of NNI needs neither space nor wrapper. Every range is a guess around the default and
says so: the files are a start to edit.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

CONFIG_FILE: Final = "config.yml"
SPACE_FILE: Final = "search_space.yml"
WRAPPER_FILE: Final = "nni_trial.py"

_SETTINGS: Final = re.compile(
    r"seed|epoch|worker|gpu|device|cuda|port|rank|interval|freq|iter|verbose|log_|save|path|dir|"
    r"file|local|world|print|patience|num_class|resume",
    re.IGNORECASE,
)
"""Names of arguments that say how a script runs, and not what it learns."""
_FRACTION: Final = re.compile(r"drop|momentum|beta|prob|ratio|smooth|gamma", re.IGNORECASE)
"""Names of arguments between 0 and 1."""
_SIZE: Final = re.compile(r"batch|hidden|size|dim|channel|filter|unit|width", re.IGNORECASE)
"""Names of arguments that are usually powers of 2 of each other."""
_RESULT: Final = re.compile(r"(val|test|best|final)?_?(acc(uracy)?|score|auc|f1|loss|error|rmse)\Z")
_LOWER_IS_BETTER: Final = re.compile(r"loss|error|rmse")
_HUGE: Final = 1e15
"""Beyond it a number is no hyperparameter, and its multiples may not be finite."""
_REPORT: Final = "report_final_result"
_ARGUMENT: Final = "add_argument"
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_Scalar: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Range of a hyperparameter that an argument of a script suggests, with the reason."""

    name: str
    option: str
    """As the script's command line has it, such as `--learning-rate`."""
    kind: str
    """`_type` of the search space."""
    values: tuple[_Scalar, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ScriptOutline:
    """Facts in a script's text for an experiment: hyperparameters, annotations, result."""

    suggestions: tuple[Suggestion, ...]
    left_out: tuple[tuple[str, str], ...]
    """(option, reason) of each argument that is not tuned."""
    annotated: bool
    """Whether it has annotations of NNI, which make the search space."""
    asks_for_parameters: bool
    reports: bool
    """Whether it reports a final result itself."""
    result: str
    """Variable of the module that looks like the result; empty if there is none."""


def outline_of(text: str) -> ScriptOutline:
    """Parse a script's text; return its possible hyperparameters, annotations and result.

    Args:
        text: Python source.

    Raises:
        SyntaxError: it is no Python.
    """
    with warnings.catch_warnings(action="ignore"):  # about the script, such as its escapes
        tree = ast.parse(text)
    suggestions: dict[str, Suggestion] = {}
    left_out: dict[str, str] = {}
    for call in _calls(tree, _ARGUMENT):
        option = _option(call)
        if option:
            found = _suggestion(option, call)
            if isinstance(found, str):
                left_out[option] = found
            else:
                suggestions[found.name] = found
    return ScriptOutline(
        suggestions=tuple(suggestions.values()),
        left_out=tuple(left_out.items()),
        annotated=any(_is_annotation(node) for node in ast.walk(tree)),
        asks_for_parameters=any(_calls(tree, "get_next_parameter")),
        reports=any(_calls(tree, _REPORT)),
        result=_result(tree),
    )


def files_of(script: str, outline: ScriptOutline) -> dict[str, str]:
    """Return file names and texts: configuration, search space, wrapper; ValueError if none fits.

    Args:
        script: name of the script, in the folder of the files.
        outline: of its text.

    Raises:
        ValueError: the script has nothing to tune, or the name of a file of the draft.
    """
    if not (outline.annotated or outline.suggestions):
        raise ValueError(
            "has no argument to tune: add one such as "
            'parser.add_argument("--rate", type=float, default=0.1)'
        )
    wrapped = not (outline.annotated or outline.asks_for_parameters)
    files = {CONFIG_FILE: _config(script, outline, WRAPPER_FILE if wrapped else script)}
    if not outline.annotated:
        files[SPACE_FILE] = _space(outline)
    if wrapped:
        files[WRAPPER_FILE] = _wrapper(script, outline)
    if script in files:
        raise ValueError(f"must have another name than {', '.join(files)}, which are written")
    return files


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else ""
            if isinstance(function, ast.Name):
                called = function.id
            if called == name:
                yield node


def _is_annotation(node: ast.AST) -> bool:
    """Return whether a statement is a text such as `'''@nni.variable(...)'''`."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value.lstrip().startswith("@nni.")
    )


def _option(call: ast.Call) -> str:
    """Return the longest option of an argument; empty for a positional one."""
    words = [
        word.value
        for word in call.args
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]
    options = [word for word in words if re.match(r"--?[A-Za-z][A-Za-z0-9_-]*\Z", word)]
    return max(options, key=len, default="")


def _suggestion(option: str, call: ast.Call) -> Suggestion | str:
    """Return a hyperparameter for an argument, or why it is not tuned."""
    given = {word.arg: word.value for word in call.keywords if word.arg}
    name = option.lstrip("-").replace("-", "_")
    action, destination = _literal(given.get("action")), _literal(given.get("dest"))
    if isinstance(destination, str) and _WORD.match(destination):
        name = destination
    if action not in {None, "store"}:
        return "a flag"
    if _SETTINGS.search(name):
        return "says how the script runs"
    choices = _literal_list(given.get("choices"))
    if choices:
        return Suggestion(name, option, "choice", choices, "the choices of the argument")
    default = _literal(given.get("default"))
    if default is None and "required" in given:
        return "is required and has no default; add it to trialCommand"
    number = isinstance(default, int | float) and not isinstance(default, bool)
    if not (number and isinstance(default, int | float) and abs(default) < _HUGE):
        return "has no number as default and no choices"
    declared = given.get("type")
    is_float = isinstance(default, float) or (
        isinstance(declared, ast.Name) and declared.id == "float"
    )
    kind, values, reason = _around(name, default, is_float=is_float)
    return Suggestion(name, option, kind, values, reason)


def _around(name: str, default: float, *, is_float: bool) -> tuple[str, tuple[_Scalar, ...], str]:
    """Return type, values and reason of a range around a default."""
    if is_float and _FRACTION.search(name) and 0 <= default <= 1:
        return "uniform", (0.0, 0.99), f"a fraction; default {default}"
    if is_float and default > 0:
        return "loguniform", (default / 10, default * 10), f"default {default}, a tenth to tenfold"
    if is_float:
        return "uniform", (min(default, 0.0), max(default, 0.0) + 1.0), f"default {default}"
    number = int(default)
    if number > 1 and _SIZE.search(name):
        return "choice", (max(1, number // 2), number, number * 2), f"default {number}"
    low = min(number, max(1, number // 2))
    return "randint", (low, max(number * 2, low + 1) + 1), f"default {number}; the end is excluded"


def _literal(node: ast.expr | None) -> object:
    """Return the value of a literal; None for other expressions."""
    if node is None:
        return None
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value


def _literal_list(node: ast.expr | None) -> tuple[_Scalar, ...]:
    value = _literal(node)
    if isinstance(value, list | tuple) and all(isinstance(one, _Scalar) for one in value):
        return tuple(value)
    return ()


def _result(tree: ast.Module) -> str:
    """Return the last variable of the module that is named like a result; empty if none is."""
    found = ""
    body: Sequence[ast.stmt] = tree.body
    blocks = [outer.body for outer in body if isinstance(outer, ast.If | ast.For | ast.With)]
    for node in [*body, *itertools.chain(*blocks)]:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and _RESULT.match(target.id):
                    found = target.id
    return found


def _config(script: str, outline: ScriptOutline, command: str) -> str:
    mode = "minimize" if _LOWER_IS_BETTER.search(outline.result) else "maximize"
    space = f"searchSpaceFile: {SPACE_FILE}"
    if outline.annotated:
        space = f"useAnnotation: true  # the annotations of {json.dumps(script)} are the space"
    return f"""\
# Experiment for {json.dumps(script)}. To start it: nnictl create --config {CONFIG_FILE}
experimentName: {json.dumps(script)}
{space}
trialCommand: {json.dumps(f"python3 {shlex.quote(command)}")}
trialCodeDirectory: .
trialConcurrency: 1  # trials at once
maxTrialNumber: 20
# maxExperimentDuration: 2h
# trialGpuNumber: 1
tuner:
  name: TPE
  classArgs:
    optimize_mode: {mode}  # or {"maximize" if mode == "minimize" else "minimize"}
trainingService:
  platform: local
"""


def _space(outline: ScriptOutline) -> str:
    lines = ["# Ranges are guesses around the defaults of the script; change them."]
    for one in outline.suggestions:
        entry = f"{{_type: {one.kind}, _value: {json.dumps(list(one.values))}}}"
        lines.append(f"{json.dumps(one.name)}: {entry}  # {one.option}: {one.reason}")
    lines += [f"# {option} is not tuned: {reason}" for option, reason in outline.left_out]
    return "\n".join(lines) + "\n"


def _wrapper(script: str, outline: ScriptOutline) -> str:
    options = {one.name: one.option for one in outline.suggestions}
    table = "".join(f"    {name!r}: {option!r},\n" for name, option in options.items())
    head = f'''\
"""Trial: runs the script with hyperparameters as arguments, and reports its result."""

import re
import runpy
import sys

import nni

OPTIONS = {{
{table}}}

parameters = nni.get_next_parameter()
arguments = [f"{{OPTIONS[name]}}={{value}}" for name, value in parameters.items()]
sys.argv = [{script!r}, *sys.argv[1:], *arguments]
'''
    if outline.reports or outline.result:
        head = head.replace("import re\n", "")
    if outline.reports:
        return head + f'runpy.run_path({script!r}, run_name="__main__")  # it reports the result\n'
    if outline.result:
        return head + (
            f'variables = runpy.run_path({script!r}, run_name="__main__")\n'
            "# The variable of the script that is the result:\n"
            f"nni.report_final_result(float(variables[{outline.result!r}]))\n"
        )
    return head + _LAST_NUMBER.format(script=script)


_LAST_NUMBER: Final = '''

class Recorder:
    """Standard output that remembers what was written."""

    def __init__(self, stream):
        self.stream, self.text = stream, ""

    def write(self, text):
        self.text = (self.text + text)[-10_000:]
        return self.stream.write(text)

    def __getattr__(self, name):
        return getattr(self.stream, name)


sys.stdout = recorder = Recorder(sys.stdout)
runpy.run_path({script!r}, run_name="__main__")
# The result is the last number that the script prints; better: nni.report_final_result in it.
numbers = re.findall(r"[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?", recorder.text)
nni.report_final_result(float(numbers[-1]))
'''
