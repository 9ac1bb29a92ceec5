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
PACKAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("proto/nni_wire", "sdk/nni", "services/*/svc_*")
    for path in ROOT.glob(pattern)
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


@pytest.mark.parametrize("package", PACKAGES)
def test_secrets_are_in_no_repr(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {field}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for field in shown_secrets(path)
    ]

    assert found == []


def test_secret_that_is_shown_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("@dataclass\nclass A:\n    token: str\n    my_password: str\n")

    assert list(shown_secrets(tmp_path / "one.py")) == ["A.token", "A.my_password"]
