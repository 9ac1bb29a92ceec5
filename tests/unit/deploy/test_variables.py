"""Every variable that `deploy/` sets is one that something reads."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.deployment import DEPLOY, ROOT

FILES = sorted(
    path
    for path in DEPLOY.rglob("*")
    if path.is_file() and path.suffix in {".yaml", ".Dockerfile", ".tpl", ".example", ".md"}
)
NAME = re.compile(r"\bNNI_[A-Z0-9_]*[A-Z0-9]")


def read_by_services() -> Iterator[str]:
    """Give the names that the modules of settings hold."""
    modules = [
        ROOT / "services/common/svc_common/environment.py",
        *ROOT.glob("services/*/svc_*/settings.py"),
        ROOT / "sdk/nni/experiment/environment.py",  # clients of a server
    ]
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from NAME.findall(node.value)


def read_by_the_bus() -> Iterator[str]:
    """Give the names that the configuration of the bus holds."""
    for config in (DEPLOY / "nats").iterdir():
        yield from re.findall(r"^[^#\n]*\$(NNI_\w+)", config.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_variables_are_read_by_something(path: Path) -> None:
    known = {*read_by_services(), *read_by_the_bus()}
    # The chart counts these up.
    found = {name.removesuffix("_") for name in NAME.findall(path.read_text())}

    assert found <= known | {"NNI_NATS_ROUTE", "NNI_NATS_POOL"}
