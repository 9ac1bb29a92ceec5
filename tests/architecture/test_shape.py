"""Rules of the style guide that no linter checks."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE_FOLDERS = (
    "proto/nni_wire",
    "sdk/nni",
    "sdk-benchmark/nni_benchmark",
    "services/common/svc_common",
    "services/manager/svc_manager",
    "services/dispatcher/svc_dispatcher",
    "services/compressor/svc_compressor",
    "services/nas/svc_nas",
    "services/trial-runner/svc_trial_runner",
    "services/standalone/svc_standalone",
)
MODULE_LINES = 600
"""A longer module must say why in its first docstring."""
LONGER = "longer than"
"""Words that introduce the reason."""
FUNCTION_LINES = 50
"""The guide stops at 40 lines of code; the signature comes on top."""
SUBJECT = r"[\"']nni\.(experiment|inbox|task|log|control|presence|live)\."
FORBIDDEN_NAMES = {
    "helpers",
    "misc",
    "common_utils",
    "logging",
    "types",
    "json",
    "redis",
    "nats",
    "utils",
}
NAMED_BY_THE_SPECIFICATION = {"sdk/nni/utils.py"}


def modules() -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _lines_of_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    start = first.end_lineno if ast.get_docstring(function) else function.lineno
    return (function.end_lineno or 0) - (start or 0)


MODULES = list(modules())


@functools.cache
def silent_modules_and_long_functions() -> tuple[list[str], list[str]]:
    """Return the modules without a docstring and the functions that are too long; parse once."""
    silent, long = [], []
    for path in MODULES:
        tree = ast.parse(path.read_text())
        if tree.body and not ast.get_docstring(tree):
            silent.append(name_of(path))
        long += [
            f"{name_of(path)}:{node.lineno} {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and _lines_of_code(node) > FUNCTION_LINES
        ]
    return silent, long


def test_modules_are_short_or_say_why_not() -> None:
    long = [
        f"{name_of(path)}: {lines} lines"
        for path in MODULES
        if (lines := path.read_text().count("\n")) > MODULE_LINES
        and LONGER not in (ast.get_docstring(ast.parse(path.read_text())) or "")
    ]

    assert long == []


def test_modules_say_in_a_docstring_what_they_are_for() -> None:
    silent, _ = silent_modules_and_long_functions()

    assert silent == []


def test_functions_are_short() -> None:
    _, long = silent_modules_and_long_functions()

    assert long == []


def test_modules_are_named_by_nouns_of_the_domain() -> None:
    odd = {name_of(path) for path in MODULES if path.stem in FORBIDDEN_NAMES}

    assert odd <= NAMED_BY_THE_SPECIFICATION


def test_only_one_module_of_the_services_makes_subjects() -> None:
    makers = [
        name_of(path)
        for path in MODULES
        if "services/" in name_of(path)
        and re.search(
            r"[\"']nni\.(experiment|inbox|task|log|control|presence|live)\.", path.read_text()
        )
    ]

    assert makers == ["services/common/svc_common/subjects.py"]


def test_only_one_module_of_the_services_reads_the_environment() -> None:
    readers = [
        name_of(path)
        for path in MODULES
        if "services/" in name_of(path) and re.search(r"os\.(environ|getenv)", path.read_text())
    ]

    assert readers == ["services/common/svc_common/environment.py"]


def test_no_source_is_unfinished() -> None:
    marks = re.compile(r"NotImplementedError|\bTODO\b|\bFIXME\b|\bXXX\b")

    assert [name_of(path) for path in MODULES if marks.search(path.read_text())] == []
