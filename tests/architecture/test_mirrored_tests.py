"""Every module of the library and the services has its test at the mirrored path.

A module of imports only, as older spellings are, has none: what it exports is tested at home.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {
    "sdk/nni": "tests/unit/sdk/nni",
    "sdk-benchmark/nni_benchmark": "tests/unit/sdk-benchmark",
    "services/common/svc_common": "tests/unit/services/common",
    "services/manager/svc_manager": "tests/unit/services/manager",
    "services/dispatcher/svc_dispatcher": "tests/unit/services/dispatcher",
    "services/compressor/svc_compressor": "tests/unit/services/compressor",
    "services/nas/svc_nas": "tests/unit/services/nas",
    "services/trial-runner/svc_trial_runner": "tests/unit/services/trial_runner",
    "services/standalone/svc_standalone": "tests/unit/services/standalone",
}
"""Folder of the tests by folder of the modules."""
TESTED_ELSEWHERE = {
    # All implementations of a port pass one suite, the fakes included.
    "services/common/svc_common/messaging/memory.py": "tests/conformance/messaging",
    "services/common/svc_common/messaging/nats_bus.py": "tests/conformance/messaging",
    "services/common/svc_common/messaging/ports.py": "tests/conformance/messaging",
    "services/dispatcher/svc_dispatcher/ports.py": "tests/conformance/dispatcher",
    "services/trial-runner/svc_trial_runner/ports.py": "tests/conformance/runner",
    "services/trial-runner/svc_trial_runner/fleet/adapters/memory.py": "tests/conformance/fleet",
    # Composition roots are tested with the servers that they open.
    "services/dispatcher/svc_dispatcher/__main__.py": "tests/integration/dispatcher",
    "services/dispatcher/svc_dispatcher/app.py": "tests/integration/dispatcher",
    "services/trial-runner/svc_trial_runner/fleet/__main__.py": "tests/integration/fleet",
    "services/compressor/svc_compressor/__main__.py": "tests/e2e/test_compression_service.py",
    "services/compressor/svc_compressor/app.py": "tests/e2e/test_compression_service.py",
    "services/nas/svc_nas/__main__.py": "tests/e2e/test_nas_service.py",
    "services/nas/svc_nas/app.py": "tests/e2e/test_nas_service.py",
    "services/nas/svc_nas/ports.py": (
        "tests/unit/services/nas/sessions/test_exploration_session.py"
    ),
    # Interfaces are tested with their implementations.
    "sdk/nni/compression/quantization_speedup/base_model_speedup.py": (
        "tests/unit/sdk/nni/compression/quantization_speedup/test_model_speedup_reference.py"
    ),
    "sdk/nni/compression/quantization_speedup/engine.py": (
        "tests/unit/sdk/nni/compression/quantization_speedup/test_onnxruntime_engine.py"
    ),
    # Declarations without behaviour: users of the values test them.
    "services/common/svc_common/messaging/limits.py": (
        "tests/integration/common/test_deployed_bus.py"
    ),
    "services/compressor/svc_compressor/domain/events.py": (
        "tests/unit/services/compressor/domain/test_job_progress.py"
    ),
    "services/nas/svc_nas/domain/events.py": ("tests/unit/services/nas/domain/test_exploration.py"),
    "services/nas/svc_nas/domain/strategy_lines.py": (
        "tests/unit/services/nas/domain/test_exploration.py"
    ),
}
"""Place of the tests of modules that have none at the mirrored path."""


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


def untested() -> list[str]:
    """Return the modules that have no test at the mirrored path."""
    return [
        path.relative_to(ROOT).as_posix()
        for source, tests in TESTS.items()
        for path in sorted((ROOT / source).rglob("*.py"))
        if not has_only_imports(path)
        and not any(
            (ROOT / tests / place).is_file() for place in mirrored(path.relative_to(ROOT / source))
        )
    ]


def test_every_module_has_its_test_at_the_mirrored_path() -> None:
    assert sorted(untested()) == sorted(TESTED_ELSEWHERE)


@pytest.mark.parametrize("place", sorted(set(TESTED_ELSEWHERE.values())))
def test_places_of_other_tests_exist(place: str) -> None:
    path = ROOT / place

    assert path.is_file() or list(path.glob("test_*.py"))
