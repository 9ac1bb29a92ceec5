"""Generator of what is made from the declarations of algorithms; run by `./dev algorithms`.

It writes the table `nni.hpo.registry.built_in`, and in `nni/hpo/__init__.py` the names of the
algorithms: the import lines for type checkers, the homes for lazy imports, and `__all__`. The
import lines under `TYPE_CHECKING` are the one list of the other exports, which people edit; the
homes and `__all__` follow from it. It writes the names of the tuners that use priors in
`nni.hpo.space.user_priors`, which a parser reads that imports no algorithm. And it writes a module
for each row of `nni.spellings`.
"""

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from nni.hpo.registry import rules
from nni.hpo.registry.arguments import DeclaredArguments
from nni.hpo.registry.declaration import declaration_of, is_declared
from nni.hpo.registry.entries import AlgorithmEntry
from nni.hpo.registry.rules import OneOf
from nni.spellings import SPELLINGS, module_source

_ROOT: Final = Path(__file__).parents[1]
_PACKAGES: Final = ("tuners", "assessors", "advisors")
"""Folders of `nni.hpo` whose modules hold algorithms."""
_MARK: Final = "\n@algorithm("
"""Text of a module that declares an algorithm; the others need not be imported."""
_KINDS: Final = ("tuner", "assessor", "advisor")

TABLE: Final = _ROOT / "registry" / "built_in.py"
EXPORTS: Final = _ROOT / "__init__.py"
PRIORS: Final = _ROOT / "space" / "user_priors.py"

_HEADER: Final = '''\
"""Table of the algorithms that come with NNI, so that none is imported to be found or checked.

Written by `./dev algorithms` from the declarations beside the classes; do not edit. The module is
longer than others because it holds every argument of every algorithm.
"""
# ruff: noqa: E501 - a meaning is one string

from types import MappingProxyType
from typing import Final

from nni.hpo.registry.arguments import REQUIRED, Argument, DeclaredArguments, Fields
from nni.hpo.registry.rules import {rules}
from nni.hpo.registry.entries import AlgorithmEntry

BUILT_IN: Final = (
'''


def declared_entries() -> tuple[AlgorithmEntry, ...]:
    """Return the declarations of all algorithms that come with NNI, by kind and name.

    Imports every module that declares one, and so numpy.
    """
    entries = [
        declaration_of(value)
        for module in _declaring_modules()
        for value in vars(importlib.import_module(module)).values()
        if is_declared(value) and value.__module__ == module
    ]
    return tuple(sorted(entries, key=lambda one: (_KINDS.index(one.kind), one.name.casefold())))


def _declaring_modules() -> Iterator[str]:
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            if _MARK in path.read_text("utf-8"):
                yield ".".join(("nni", "hpo", *path.relative_to(_ROOT).with_suffix("").parts))


def table_source(entries: Iterable[AlgorithmEntry]) -> str:
    """Return the text of the module `built_in`, unformatted."""
    body = "".join(f"    {source_of(entry)},\n" for entry in entries)
    names = [name for name, value in vars(rules).items() if hasattr(value, "accepts")]
    return f"{_HEADER.format(rules=', '.join(sorted(names)))}{body})\n"


def source_of(value: object) -> str:
    """Return an expression that builds a value; of dataclasses, without fields that are default."""
    if isinstance(value, DeclaredArguments):
        check = f", {value.check!r}" if value.check else ""
        return f"DeclaredArguments({value.algorithm!r}, {source_of(value.arguments)}{check})"
    if isinstance(value, tuple):
        return "(" + "".join(f"{source_of(item)}," for item in value) + ")"
    if isinstance(value, Mapping):
        return f"MappingProxyType({dict(value)!r})"
    if is_dataclass(value) and not isinstance(value, type | OneOf):
        given = ", ".join(f"{name}={source_of(item)}" for name, item in _changed_fields(value))
        return f"{type(value).__name__}({given})"
    return repr(value)


def _changed_fields(value: object) -> Iterator[tuple[str, object]]:
    assert is_dataclass(value)
    for field in fields(value):
        item = getattr(value, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if type(item) is not type(default) or item != default:
            yield field.name, item


def exported_names(source: str, entries: Iterable[AlgorithmEntry]) -> dict[str, str]:
    """Return name and home of every export of a package.

    Args:
        source: of the package; its imports under `TYPE_CHECKING` are exported.
        entries: whose classes are exported as well.
    """
    block = _type_checking_block(ast.parse(source))
    homes = {
        alias.name: statement.module or ""
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    for entry in entries:
        module, _, name = entry.class_path.partition(":")
        homes[name] = module
    return {name: module for name, module in homes.items() if _exists(module)}


def exports_source(source: str, homes: Mapping[str, str]) -> str:
    """Return the source of a package with its imports, homes and `__all__` written anew."""
    tree = ast.parse(source)
    imports = "".join(f"    from {homes[name]} import {name}\n" for name in sorted(homes))
    table = "".join(f"    {name!r}: {homes[name]!r},\n" for name in sorted(homes))
    names = "".join(f"    {name!r},\n" for name in sorted(homes))
    changes: dict[ast.stmt, str] = {
        _type_checking_block(tree): f"if TYPE_CHECKING:\n{imports}",
        _assignment(tree, "_HOMES"): f"_HOMES = {{\n{table}}}\n",
        _assignment(tree, "__all__"): f"__all__ = [\n{names}]\n",
    }
    return _replaced(source, changes)


def priors_source(source: str, entries: Iterable[AlgorithmEntry]) -> str:
    """Update the list of tuners that use priors in the source code of `user_priors`; return it."""
    names = tuple(entry.name for entry in entries if entry.priors)
    statement = _assignment(ast.parse(source), "TUNERS_WITH_PRIORS")
    return _replaced(source, {statement: f"TUNERS_WITH_PRIORS: Final = {names!r}\n"})


def _replaced(source: str, changes: Mapping[ast.stmt, str]) -> str:
    """Return a source with other text in the lines of some of its statements."""
    lines = source.splitlines(keepends=True)
    for statement, text in sorted(changes.items(), key=lambda pair: -pair[0].lineno):
        lines[statement.lineno - 1 : statement.end_lineno] = [text]
    return "".join(lines)


def _exists(module: str) -> bool:
    """Return whether a module of `nni` has a file; one whose algorithm was deleted has none."""
    folder = _ROOT.parent.parent.joinpath(*module.split("."))
    return folder.with_suffix(".py").is_file() or folder.is_dir()


def _type_checking_block(tree: ast.Module) -> ast.If:
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            return statement
    raise ValueError("the package has no block 'if TYPE_CHECKING:'")


def _assignment(tree: ast.Module, name: str) -> ast.stmt:
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if [ast.unparse(target) for target in targets] == [name]:
                return statement
    raise ValueError(f"the package does not assign {name}")


def module_path(module: str) -> Path:
    """Return the source file of a module of `nni`; for a package, its `__init__.py`."""
    folder = _ROOT.parent.parent.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def main() -> None:
    """Write the generated files: table of algorithms, exports, tuners with priors, import paths."""
    # An old table may not be importable, after a merge or the removal of a rule.
    empty = ModuleType("nni.hpo.registry.built_in")
    vars(empty)["BUILT_IN"] = ()
    sys.modules[empty.__name__] = empty
    entries = declared_entries()
    TABLE.write_text(table_source(entries), "utf-8")
    source = EXPORTS.read_text("utf-8")
    EXPORTS.write_text(exports_source(source, exported_names(source, entries)), "utf-8")
    PRIORS.write_text(priors_source(PRIORS.read_text("utf-8"), entries), "utf-8")
    for module in SPELLINGS:
        module_path(module).write_text(module_source(module), "utf-8")


if __name__ == "__main__":
    main()
