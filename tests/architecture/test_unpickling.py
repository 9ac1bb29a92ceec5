"""Neither services nor client open data that can run code.

Pickles belong to processes of the user: hosts of algorithms, trials and jobs. Each module that
opens one stands here with its reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPENED_BY = {
    "sdk/nni/common/serializer/pickles.py": "documents and checkpoints that the user's processes "
    "wrote; every other module of the library opens pickles by this one",
    "sdk/nni/compression/scheduling/task_files.py": "whole models that the same process wrote",
}
"""Modules that may unpickle, and why; they are imported by processes of the user only."""
SAFE_LOADERS = {"_Loader"}
"""Names of classes that derive from YAML's `SafeLoader`."""
BANNED_MODULES = {
    "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve",
}  # fmt: skip
BANNED_CALLS = {
    ("torch", "load"), ("numpy", "load"), ("np", "load"), ("yaml", "load"), ("yaml", "load_all"),
    ("yaml", "unsafe_load"), ("yaml", "full_load"), ("pandas", "read_pickle"),
    ("pd", "read_pickle"), ("builtins", "eval"), ("builtins", "exec"),
}  # fmt: skip
RUNS_USER_CODE = {
    "sdk/nni/trial/warm.py": "runs the trial's script, as `python script.py` would",
    "services/manager/svc_manager/converters/event_functions.py": "compiles functions from names "
    "of fields, at import and from declarations only, as `dataclasses` does; no data reaches it",
}
"""Modules whose purpose is to run source code."""
PACKAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("proto/nni_wire", "sdk/nni", "services/*/svc_*")
    for path in ROOT.glob(pattern)
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def openings(path: Path) -> Iterator[str]:
    """Yield the imports and calls of a module that can run code from data."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in BANNED_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.partition(".")[0] in BANNED_MODULES:
                yield node.module
        elif isinstance(node, ast.Call):
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[str]:
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        if (function.value.id, function.attr) in BANNED_CALLS and not _is_safe(node):
            yield f"{function.value.id}.{function.attr}"
    elif isinstance(function, ast.Name) and function.id in {"eval", "exec"}:
        yield function.id


def _is_safe(node: ast.Call) -> bool:
    """Return whether the arguments of a call restrict it to numbers and names."""
    said = {keyword.arg: keyword.value for keyword in node.keywords}
    for name, wanted in (("weights_only", True), ("allow_pickle", False)):
        value = said.get(name)
        if isinstance(value, ast.Constant) and value.value is wanted:
            return True
    loader = said.get("Loader")
    return isinstance(loader, ast.Attribute | ast.Name) and (
        "Safe" in ast.unparse(loader) or ast.unparse(loader) in SAFE_LOADERS
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_that_can_run_code_is_opened(package: str) -> None:
    found = [
        f"{name_of(path)}: {opening}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if name_of(path) not in OPENED_BY and name_of(path) not in RUNS_USER_CODE
        for opening in openings(path)
    ]

    assert found == []


@pytest.mark.parametrize("name", list(RUNS_USER_CODE))
def test_exceptions_exist_and_are_needed(name: str) -> None:
    assert list(openings(ROOT / name))


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from cloudpickle import loads", "import torch\ntorch.load(p)",
        "import numpy as np\nnp.load(p, allow_pickle=True)", "import yaml\nyaml.load(t)", "eval(t)",
    ],
)  # fmt: skip
def test_what_is_banned_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text)

    assert list(openings(tmp_path / "one.py"))


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.load(p, weights_only=True)", "np.load(p, allow_pickle=False)",
        "yaml.load(t, Loader=yaml.CSafeLoader)", "json.load(f)", "model.eval()",
    ],
)  # fmt: skip
def test_what_is_safe_is_not(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text)

    assert list(openings(tmp_path / "one.py")) == []
