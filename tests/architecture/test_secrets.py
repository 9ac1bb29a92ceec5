"""Secrets are in no repr: logs, tracebacks and debuggers show reprs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECRET = re.compile(r"(^|_)(token|password|secret|secret_key|passwords|authorization|cookie)(_|$)")
NOT_SECRET = {
    "next_token": "names a page",
    "page_token": "names a page",
    "token_length": "is a number",
    "reading_needs_token": "is yes or no",
}
MODULES = sorted(
    path
    for folder in ("proto/nni_wire", "sdk/nni", "services")
    for path in (ROOT / folder).rglob("*.py")
    if "node_modules" not in path.parts
)


def shown_secrets(path: Path) -> Iterator[str]:
    """Yield the fields of dataclasses that look secret and are in the repr."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and "dataclass" in map(_name, node.decorator_list):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    name = field.target.id
                    if SECRET.search(name) and name not in NOT_SECRET and not _is_hidden(field):
                        yield f"{node.name}.{name}"


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _is_hidden(field: ast.AnnAssign) -> bool:
    if "bool" in ast.unparse(field.annotation) or ast.unparse(field.annotation) == "int":
        return True
    return field.value is not None and "repr=False" in ast.unparse(field.value)


@pytest.mark.parametrize("path", MODULES, ids=lambda one: one.relative_to(ROOT).as_posix())
def test_secrets_are_in_no_repr(path: Path) -> None:
    assert list(shown_secrets(path)) == []


def test_secret_that_is_shown_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("@dataclass\nclass A:\n    token: str\n    my_password: str\n")

    assert list(shown_secrets(tmp_path / "one.py")) == ["A.token", "A.my_password"]
