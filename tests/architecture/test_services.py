"""Inside every service imports point one way: main, app, APIs and adapters, use cases, domain."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    path.name: path
    for path in sorted(ROOT.glob("services/*/svc_*"))
    if path.name not in {"svc_common", "svc_standalone"} and path.is_dir()
}
COMPOSITION = {"app", "__main__", "check_child", "fleet.app", "joining.__main__", "wiring"}
"""Modules that may name concrete adapters: they start processes, or compose parts of them."""
CONCRETE_PLUMBING = (
    "svc_common.messaging.nats_",
    "svc_common.messaging.memory",
    "svc_common.storage.directory",
    "svc_common.storage.memory",
    "svc_common.storage.factory",
    "svc_common.storage.retries",
    "svc_common.storage.s3.",
    "svc_common.storage.s3_connection",
)
PURE_PLUMBING = {"svc_common.errors", "svc_common.experiment_events"}
IMPURE = {
    "asyncio", "datetime.now", "grpc", "httpx", "nats", "nni_proto", "os", "random", "socket",
    "starlette", "structlog", "subprocess", "threading", "time", "uvicorn",
}  # fmt: skip
"""What a domain may not import: I/O, clocks, randomness, messages, logging."""


def imports(path: Path) -> Iterator[str]:
    """Give the full names that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inner(package: Path, path: Path) -> str:
    """Give a module's name within its service, e.g. `adapters.claims`."""
    return ".".join(path.relative_to(package).with_suffix("").parts)


@pytest.mark.parametrize("name", PACKAGES)
def test_only_the_composition_root_names_adapters(name: str) -> None:
    package = PACKAGES[name]
    offenders = [
        f"{inner(package, path)} imports {imported}"
        for path in package.rglob("*.py")
        if (module := inner(package, path)) not in COMPOSITION and not module.startswith("adapters")
        for imported in imports(path)
        if imported.startswith((f"{name}.adapters.", *CONCRETE_PLUMBING))
    ]

    assert offenders == []


@pytest.mark.parametrize("name", PACKAGES)
def test_nothing_imports_the_composition_root(name: str) -> None:
    package = PACKAGES[name]
    offenders = [
        f"{inner(package, path)} imports {imported}"
        for path in package.rglob("*.py")
        if inner(package, path) not in COMPOSITION
        for imported in imports(path)
        if imported in {f"{name}.app", f"{name}.__main__"}
    ]

    assert offenders == []


@pytest.mark.parametrize("name", PACKAGES)
def test_domain_imports_only_what_is_pure(name: str) -> None:
    package = PACKAGES[name]
    offenders = [
        f"{inner(package, path)} imports {imported}"
        for path in (package / "domain").rglob("*.py")
        for imported in imports(path)
        if imported.partition(".")[0] in IMPURE
        or (imported.startswith("svc_common") and not imported.startswith(tuple(PURE_PLUMBING)))
        or (imported.startswith(f"{name}.") and not imported.startswith(f"{name}.domain"))
    ]

    assert offenders == []


@pytest.mark.parametrize("name", PACKAGES)
def test_ports_know_only_values(name: str) -> None:
    package = PACKAGES[name]
    allowed = (f"{name}.domain", "svc_common.", "nni_proto", "nni_wire")
    offenders = [
        imported
        for path in [package / "ports.py"]
        if path.exists()
        for imported in imports(path)
        if imported.startswith(("svc_", "nni")) and not imported.startswith(allowed)
    ]

    assert offenders == []


@pytest.mark.parametrize("name", PACKAGES)
def test_main_has_no_logic(name: str) -> None:
    lines = (PACKAGES[name] / "__main__.py").read_text().count("\n")

    assert lines <= 30
