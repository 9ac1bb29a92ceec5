"""Every public name of the library is documented in full: arguments, result, errors, an example.

The public names are those that `nni`, `nni.compression`, `nni.hpo` and `nni.experiment` export. Of
their classes, every public method counts, inherited ones included. A method that overrides one of
ours need not repeat its sections: the base class is the contract. Errors count where the body
raises them itself. `tests/unit/docs/test_docstring_examples.py` executes the examples.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import pytest

from docs.generator.python_api import public_names

MODULES = (
    "nni",
    "nni.compression",
    "nni.compression.distillation",
    "nni.compression.experiment",
    "nni.compression.job",
    "nni.compression.speedup",
    "nni.compression.utils",
    "nni.common.serializer",
    "nni.feature_engineering",
    "nni.integrations",
    "nni.hpo",
    "nni.mutable",
    "nni.nas",
    "nni.nas.evaluator",
    "nni.nas.execution",
    "nni.nas.experiment",
    "nni.nas.experiment.config",
    "nni.nas.hub.pytorch",
    "nni.nas.hub.pytorch.modules",
    "nni.nas.nn.pytorch",
    "nni.nas.space",
    "nni.nas.strategy",
    "nni.nas.strategy.middleware",
    "nni.nas.strategy.utils",
    "nni.nas.utils",
    "nni.experiment",
    "nni.plot",
)
OURS = "nni"
CONSTRUCTORS = ("__init__", "__post_init__", "__new__")
EXAMPLE = re.compile(r"^(>>> |```python$)", re.MULTILINE)


@dataclass(frozen=True)
class Documented:
    """Public function, method or class with its docstring by section."""

    path: str
    text: str
    contract: str
    """Docstrings of the methods that it overrides."""
    signature: Callable[..., object] | None
    """Callable that takes the arguments; None if it is documented elsewhere, or takes none."""
    bodies: tuple[Callable[..., object], ...]
    """Functions whose own `raise` statements reach the caller."""
    fields: tuple[str, ...]
    """Fields of the class without a docstring beside them."""
    needs_return: bool
    needs_example: bool

    def section(self, heading: str) -> str:
        """Return the text below a heading, empty without it."""
        return "\n".join(
            textwrap.dedent(body).strip()
            for body in re.findall(
                rf"^{heading}:\n((?:(?: .*)?\n)+)", f"{self.text}\n{self.contract}\n", re.MULTILINE
            )
        )

    def names(self, *headings: str) -> set[str]:
        """Return the names that the entries of sections begin with."""
        found: set[str] = set()
        for heading in headings:
            for entry in re.findall(
                r"^([\w*`, .]+?)(?: \([^)]*\))?:", self.section(heading), re.MULTILINE
            ):
                found |= {name.strip("*` ").rpartition(".")[2] for name in entry.split(",")}
        return found

    def faults(self) -> Iterator[str]:
        """Yield what the docstring lacks."""
        if not self.text.partition("\n")[0].strip():
            yield f"{self.path}: no first line"
        arguments = {*parameters(self.signature), *self.fields}
        for name in sorted(arguments - self.names("Args", "Attributes")):
            yield f"{self.path}: `Args:` does not name {name}"
        if self.needs_return and not (self.section("Returns") or self.section("Yields")):
            yield f"{self.path}: no `Returns:`"
        raised = {error for body in self.bodies for error in raised_by(body)}
        for error in sorted(raised - self.names("Raises")):
            yield f"{self.path}: `Raises:` does not name {error}"
        if self.needs_example and not EXAMPLE.search(self.section("Examples")):
            yield f"{self.path}: no `Examples:`"


def parameters(function: Callable[..., object] | None) -> list[str]:
    """Return the public names of the parameters, without `self`."""
    if function is None:
        return []
    found = list(inspect.signature(function).parameters)
    return [name for name in found if name not in {"self", "cls"} and not name.startswith("_")]


def raised_by(function: Callable[..., object]) -> set[str]:
    """Return the names of the errors that the body raises itself."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    return set(_raised(definition.body))


def _raised(nodes: list[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # its errors are raised when it is called
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = error.attr if isinstance(error, ast.Attribute) else getattr(error, "id", "")
            if name[:1].isupper():  # a name in lower case is a variable or makes the error
                yield name
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield from _raised([one for one in value if isinstance(one, ast.stmt)])
                for handler in value:
                    if isinstance(handler, ast.ExceptHandler | ast.match_case):
                        yield from _raised(handler.body)


def documented(module: str) -> Iterator[Documented]:
    """Yield every public function, class and method of a module."""
    for name in public_names(module):
        value = getattr(import_module(module), name)
        if inspect.isclass(value):
            yield from class_and_methods(value)
        elif inspect.isfunction(value):
            yield function_of(value, value, needs_example=True)


def function_of(
    function: Callable[..., object],
    documentation: object,
    *,
    contract: str = "",
    needs_example: bool = False,
) -> Documented:
    returned = inspect.signature(function).return_annotation
    return Documented(
        f"{function.__module__}.{function.__qualname__}",
        inspect.getdoc(documentation) or "",
        contract,
        function,
        (function,),
        (),
        needs_return=returned not in {None, "None", "NoReturn", inspect.Signature.empty},
        needs_example=needs_example,
    )


def class_and_methods(cls: type) -> Iterator[Documented]:
    """Yield the class, with its constructor, and the methods it defines or inherits from us."""
    homes = [one for one in cls.__mro__ if one.__module__.partition(".")[0] == OURS]
    written = [vars(cls)[name] for name in CONSTRUCTORS if is_written(cls, name)]
    takes_arguments = bool(written) and not issubclass(cls, enum.Enum | tuple)
    yield Documented(
        f"{cls.__module__}.{cls.__qualname__}",
        inspect.cleandoc(cls.__doc__ or ""),
        "",
        cls if takes_arguments and not dataclasses.is_dataclass(cls) else None,
        tuple(written),
        tuple(undocumented_fields(homes)),
        needs_return=False,
        needs_example=True,
    )
    for name in dict.fromkeys(name for home in homes for name in vars(home)):
        home = next(one for one in homes if name in vars(one))
        member = vars(home)[name]
        if name.startswith("_") or inspect.isclass(member):
            continue
        contract = "\n".join(
            inspect.getdoc(vars(one)[name]) or "" for one in homes if name in vars(one)
        )
        if isinstance(member, staticmethod | classmethod):
            yield function_of(member.__func__, getattr(cls, name), contract=contract)
        elif isinstance(member, property) and member.fget is not None:
            yield dataclasses.replace(
                function_of(member.fget, member), signature=None, needs_return=False
            )
        elif inspect.isfunction(member):
            yield function_of(member, getattr(cls, name), contract=contract)


def undocumented_fields(homes: list[type]) -> set[str]:
    """Return the public fields that a docstring follows in none of the classes."""
    fields = [field for home in homes for field in fields_of(home)]
    return {name for name, _ in fields} - {name for name, described in fields if described}


@functools.cache
def fields_of(cls: type) -> list[tuple[str, bool]]:
    """Return each public field of a class, and whether a docstring follows it."""
    return list(fields_in(body_of(cls), is_enum=issubclass(cls, enum.Enum)))


def body_of(cls: type) -> list[ast.stmt]:
    """Return the statements of a class."""
    body = tree_of(cls.__module__).body
    for name in cls.__qualname__.split("."):
        body = next(
            node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name
        )
    return body


@functools.cache
def tree_of(module: str) -> ast.Module:
    """Return the parsed source of a module; `inspect.getsource` parses it for each class."""
    return ast.parse(inspect.getsource(import_module(module)))


def fields_in(body: list[ast.stmt], *, is_enum: bool) -> Iterator[tuple[str, bool]]:
    """Yield each public field among statements, and whether a docstring follows it."""
    for node, following in itertools.zip_longest(body, body[1:]):
        targets: list[ast.expr] = [node.target] if isinstance(node, ast.AnnAssign) else []
        if isinstance(node, ast.Assign) and is_enum:
            targets = node.targets
        for target in targets:
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                yield target.id, is_text(following)


def is_text(node: ast.stmt | None) -> bool:
    """Return whether a statement is a string alone, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_written(cls: type, name: str) -> bool:
    """Return whether the class defines the method itself, rather than a decorator for it."""
    method = vars(cls).get(name)
    if not inspect.isfunction(method):
        return False
    return method.__module__ == cls.__module__ and method.__code__.co_filename != "<string>"


@pytest.mark.parametrize("module", MODULES)
def test_docstring_names_arguments_result_errors_and_shows_an_example(module: str) -> None:
    public = {one.path: one for one in documented(module)}

    assert public
    assert [fault for one in public.values() for fault in one.faults()] == []
