"""The manager opens files below folders of experiments by `SafeFolder` only.

A bare path follows links, which trials place, and leaves its root. Each other use of the file
system by a module of the manager stands here with its reason. What cannot be seen in the text, such
as a path that is passed to a store, is tested by attacks: see `test_folder_admission`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANAGER = ROOT / "services/manager/svc_manager"
ALLOWED = {
    "adapters/saved_folders.py": "a temporary folder with a random name, open to this user only",
    "usecases/uploads.py": "as above",
    "usecases/activation.py": "looks whether a code directory is there; reads and writes nothing",
    "web/listeners/page.py": "files of this package",
    "web/tensorboards.py": "looks whether a folder is there; its links were checked",
}
"""Modules that use paths themselves, and why that is safe."""
METHODS = {
    "copyfile", "copytree", "glob", "hardlink_to", "is_dir", "iterdir", "mkdir", "move",
    "read_bytes", "read_text", "rglob", "rmdir", "rmtree", "symlink_to", "touch", "unlink",
    "unpack_archive", "write_bytes", "write_text",
}  # fmt: skip
"""Methods of paths and functions of `shutil`."""
FUNCTIONS_OF_OS = {
    "chmod", "link", "listdir", "makedirs", "mkdir", "open", "readlink", "remove", "rename",
    "replace", "rmdir", "scandir", "symlink", "truncate", "unlink", "walk",
}  # fmt: skip
UNPACKING = {"extract", "extractall", "extractfile", "unpack_archive"}


def uses(source: str) -> Iterator[str]:
    """Yield the uses of the file system by paths in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and _is_of_a_module(node):
            yield node.attr  # also where it is only passed on, as to `asyncio.to_thread`
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "open":
            yield "open"
        if not isinstance(function, ast.Attribute):
            continue
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        by_path = function.attr in METHODS or (function.attr == "open" and _has_mode(node))
        if by_path and owner not in {"os", "shutil"}:
            yield function.attr


def _is_of_a_module(node: ast.Attribute) -> bool:
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    return owner == "shutil" or (owner == "os" and node.attr in FUNCTIONS_OF_OS)


def _has_mode(call: ast.Call) -> bool:
    """Return whether a call of `open` has a mode such as "rb", as that of a path has."""
    return any(
        isinstance(one, ast.Constant)
        and isinstance(one.value, str)
        and set(one.value) <= set("rwxabt+")
        for one in call.args
    )


@pytest.mark.parametrize(
    "source",
    [
        "open(name)",
        "Path(directory).read_text()",
        "path.open('rb')",
        "shutil.rmtree(directory)",
        "os.open(path, os.O_RDONLY)",
        "to_thread(shutil.rmtree, directory)",
        "(directory / name).unlink()",
    ],
)
def test_a_use_of_a_path_is_seen(source: str) -> None:
    assert len(list(uses(source))) == 1


@pytest.mark.parametrize(
    "source", ["roots.open(directory)", "text.replace('a', 'b')", "os.fstat(3)"]
)
def test_other_calls_are_not_taken_for_one(source: str) -> None:
    assert list(uses(source)) == []


def test_the_manager_opens_no_path_itself() -> None:
    found = {
        path.relative_to(MANAGER).as_posix(): sorted(set(uses(path.read_text())))
        for path in sorted(MANAGER.rglob("*.py"))
    }

    assert {name: calls for name, calls in found.items() if calls and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found.get(name)] == [], "no longer needed"


def test_archives_are_unpacked_in_one_place() -> None:
    found = []
    for folder in ("sdk/nni", "services", "proto/nni_wire"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            if not any(name in text for name in UNPACKING):
                continue
            tree = ast.parse(text)
            names = {
                alias.name.partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.Import)
                for alias in node.names
            }
            calls = {
                node.func.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            }
            if names & {"tarfile", "zipfile", "shutil"} and calls & UNPACKING:
                found.append(path.relative_to(ROOT).as_posix())

    assert found == []
