"""Every test asserts: a test that only runs code passes for any result."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CHECKS = ("raises", "warns", "assert_", "check", "expect", "fail")
"""Prefixes of functions that assert. A wait for a state is none: a test says what then holds."""


def asserts(node: ast.AST, helpers: frozenset[str]) -> bool:
    """Return whether code asserts, directly or by a helper."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assert):
            return True
        if isinstance(part, ast.Call):
            name = ast.unparse(part.func).rpartition(".")[2]
            if name in helpers or name.startswith(CHECKS):
                return True
    return False


def silent_tests(path: Path) -> Iterator[str]:
    """Yield the tests of a module that assert nothing, themselves or by its functions."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    helpers: frozenset[str] = frozenset()
    for _ in range(3):  # a function that calls an asserting one asserts as well
        helpers = frozenset(node.name for node in functions if asserts(node, helpers))
    for node in functions:
        if node.name.startswith("test_") and node.name not in helpers:
            yield f"{path.relative_to(TESTS)}: {node.name}"


def test_every_test_asserts() -> None:
    silent = [found for path in sorted(TESTS.rglob("test_*.py")) for found in silent_tests(path)]

    assert silent == []


def test_a_test_that_asserts_nothing_is_found() -> None:
    text = "def test_a():\n    helper()\n\ndef test_b():\n    print()\n"

    silent = [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and not asserts(node, frozenset({"helper"}))
    ]

    assert silent == ["test_b"]
