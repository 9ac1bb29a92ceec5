"""Reference page of the experiment configuration, made from its models."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from typing import Any, Final

from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from docs.generator.markdown import code, page, table
from nni.experiment import config
from nni.experiment.config.base import ConfigModel

_TITLE: Final = "# Experiment configuration"
_INTRODUCTION: Final = (
    "Fields of the YAML file of `nnictl create --config`. In Python they are attributes of the "
    "same name in snake_case."
)


def configuration_page() -> str:
    """Return the page: one table of fields per configuration class."""
    blocks = [_TITLE, _INTRODUCTION]
    for name in sorted(config.__all__, key=lambda one: (one != "ExperimentConfig", one)):
        model = getattr(config, name)
        if not (inspect.isclass(model) and issubclass(model, ConfigModel)):
            continue
        rows = [
            [code(to_camel(field)), code(_type_text(info)), _default(info), meaning]
            for field, info, meaning in fields_of(model)
        ]
        blocks += [f"## {name}", *_description(model)]
        if rows:
            blocks.append(table(["Field", "Type", "Default", "Meaning"], rows))
    return page(*blocks)


def _description(model: type[ConfigModel]) -> Iterator[str]:
    """Yield the docstring of a class as blocks, its example as a fenced block of code."""
    text, _, example = (inspect.getdoc(model) or "").partition("\nExamples:\n")
    yield text.strip()
    if example:
        yield f"```pycon\n{textwrap.dedent(example).strip()}\n```"


def fields_of(model: type[ConfigModel]) -> Iterator[tuple[str, FieldInfo, str]]:
    """Yield name, declaration and documentation of each field of a model."""
    documentation: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, ConfigModel):
            documentation |= _documented(base)
    for name, info in model.model_fields.items():
        yield name, info, documentation.get(name, "")


def _documented(model: type[ConfigModel]) -> dict[str, str]:
    """Return the text below each annotated field of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                found[name] = inspect.cleandoc(text)
    return found


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default_factory is not None or info.default is None:
        return ""
    return code(info.default)


def _type_text(info: FieldInfo) -> str:
    return _name_of(info.annotation)


def _name_of(annotation: Any) -> str:  # noqa: ANN401 - types have no common type
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        return " | ".join(_name_of(one) for one in arguments if one is not type(None))
    if origin is typing.Annotated:
        return _name_of(arguments[0])
    if origin is typing.Literal:
        return " | ".join(map(str, arguments))
    if origin is not None:
        inner = ", ".join(_name_of(one) for one in arguments)
        return f"{origin.__name__}[{inner}]"
    return getattr(annotation, "__name__", str(annotation))
