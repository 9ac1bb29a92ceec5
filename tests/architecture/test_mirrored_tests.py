"""Every module of the library has its test at the mirrored path.

A module of imports only, as older spellings are, has none: what it exports is tested at home.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = {
    "sdk/nni": "tests/unit/sdk/nni",
    "sdk-benchmark/nni_benchmark": "tests/unit/sdk-benchmark",
}
"""Folder of the tests by folder of the modules."""


def has_only_imports(path: Path) -> bool:
    """Return whether a module holds imports, its docstring and `__all__`, and nothing else."""
    return all(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in ast.parse(path.read_text("utf-8")).body
    )


def mirrored(module: Path) -> list[Path]:
    """Return the places where the test of a module may lie, inside the folder of the tests."""
    if module.name == "__init__.py":
        package = module.parent
        beside = [package.with_name(f"test_{package.name}.py")] if package.name else []
        return [module.with_name("test_init.py"), *beside]
    return [module.with_name(f"test_{module.stem.strip('_')}.py")]


def test_every_module_has_its_test_at_the_mirrored_path() -> None:
    missing = [
        path.relative_to(ROOT).as_posix()
        for source, tests in TESTS.items()
        for path in sorted((ROOT / source).rglob("*.py"))
        if not has_only_imports(path)
        and not any(
            (ROOT / tests / place).is_file() for place in mirrored(path.relative_to(ROOT / source))
        )
    ]

    assert missing == []
