"""Reference pages of the algorithms, made from their declarations."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Final

import yaml

from docs.generator.markdown import code, page, table
from nni.hpo.registry.entries import AlgorithmEntry
from nni.hpo.registry.factory import algorithms

_KINDS: Final = ("tuner", "assessor", "advisor")
_INTRODUCTION: Final = (
    "A *tuner* proposes configurations, an *assessor* stops trials early, an *advisor* does both. "
    "`nnictl algo show NAME` prints the same facts."
)
_SECTION: Final = re.compile(r"^(\w+):$", re.MULTILINE)


def algorithm_pages() -> dict[str, str]:
    """Return one page per built-in algorithm and their index, by path below the pages."""
    entries = built_in_entries()
    return {
        "algorithms/index.md": _index(entries),
        **{path_of(entry): _page(entry) for entry in entries},
    }


def built_in_entries() -> list[AlgorithmEntry]:
    """Return the algorithms that NNI itself has, by kind and name."""
    entries = [entry for entry in algorithms() if entry.source == "nni"]
    return sorted(entries, key=lambda one: (_KINDS.index(one.kind), one.name.lower()))


def path_of(entry: AlgorithmEntry) -> str:
    """Return the path of an algorithm's page."""
    return f"algorithms/{entry.name.lower()}.md"


def docstring_section(entry: AlgorithmEntry, name: str) -> str:
    """Return the text of one section of the docstring of an algorithm's class; empty: none."""
    text = _docstring(entry)
    heads = list(_SECTION.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        if head[1] == name:
            end = following.start() if following else len(text)
            return inspect.cleandoc(text[head.end() : end])
    return ""


def _docstring(entry: AlgorithmEntry) -> str:
    module, _, name = entry.class_path.partition(":")
    return inspect.getdoc(getattr(importlib.import_module(module), name)) or ""


def _index(entries: list[AlgorithmEntry]) -> str:
    blocks = ["# Algorithms", _INTRODUCTION]
    for kind in _KINDS:
        rows = [
            [f"[{entry.name}]({entry.name.lower()}.md)", entry.summary, entry.use_when]
            for entry in entries
            if entry.kind == kind
        ]
        blocks += [
            f"## {kind.capitalize()}s",
            table(["Name", "Method", "When to use it"], rows),
        ]
    return page(*blocks)


def _page(entry: AlgorithmEntry) -> str:
    docstring = _docstring(entry)
    first_section = _SECTION.search(docstring)
    description = docstring[: first_section.start()] if first_section else docstring
    module, _, name = entry.class_path.partition(":")
    blocks = [
        f"# {entry.name}",
        description,
        f"**When to use it.** {entry.use_when}",
        f"```yaml\n{_configuration(entry)}```",
        f"Class: {code(f'{module}.{name}')}"
        + (
            f", documented as {code(entry.documented_path)}."
            if entry.documented_path != f"{module}.{name}"
            else "."
        ),
        "## Arguments",
        _arguments(entry),
        "## What it supports",
        table(["Property", "Value"], entry.capabilities.items()),
        "## Example",
        f"```pycon\n{docstring_section(entry, 'Examples')}\n```",
    ]
    if entry.reference:
        blocks += ["## Source", entry.reference]
    return page(*blocks)


def _configuration(entry: AlgorithmEntry) -> str:
    arguments = {
        argument.name: entry.defaults.get(argument.name, argument.default)
        for argument in entry.arguments
        if argument.name == "optimize_mode"
    }
    section: dict[str, object] = {"name": entry.name}
    if arguments:
        section["classArgs"] = arguments
    return yaml.safe_dump({entry.kind: section}, sort_keys=False)


def _arguments(entry: AlgorithmEntry) -> str:
    rows = [
        [
            code(row["Name"]),
            row["Type"],
            row["Default"] if row["Default"] == "required" else code(row["Default"]),
            row["Range"],
            row["Meaning"],
        ]
        for row in entry.argument_rows()
    ]
    if not rows:
        return "It has no arguments."
    return table(["Name", "Type", "Default", "Range", "Meaning"], rows)
