"""Reference pages of the algorithms of compression, made from their classes and docstrings."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Final

from docs.generator.docstrings import entries_of, sections_of
from docs.generator.markdown import code, page, table
from nni.compression.base.pruner import Pruner
from nni.compression.job.description import ALGORITHMS
from nni.compression.pruning.named_pruners import PRUNERS
from nni.compression.quantization.quantizer import Quantizer

_FAMILIES: Final = {
    "Pruner": ("nni.compression.pruning", "pruning.md", "masks the least important parts"),
    "Quantizer": ("nni.compression.quantization", "quantization.md", "rounds to few bits"),
    "Distiller": ("nni.compression.distillation", "distillation.md", "trains by a larger model"),
}
"""By ending of the class names: the module that exports them, its guide, and what they do."""
_BLOCKS: Final = {"default": "single elements", "out_channel": "output channels"}


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of compression and what its class says about it."""

    family: str
    """Key of `_FAMILIES`."""
    cls: type
    """The class."""

    @property
    def name(self) -> str:
        """Return the name of the class."""
        return self.cls.__name__

    @property
    def path(self) -> str:
        """Return the path of the page."""
        return f"compression/{self.name.lower()}.md"

    @property
    def sections(self) -> dict[str, str]:
        """Return the sections of the docstring."""
        return sections_of(inspect.getdoc(self.cls) or "")

    @property
    def summary(self) -> str:
        """Return the first paragraph of the docstring in one line."""
        return " ".join(self.sections[""].partition("\n\n")[0].split())

    @property
    def arguments(self) -> dict[str, inspect.Parameter]:
        """Return the arguments of the constructor by name."""
        found = inspect.signature(self.cls).parameters
        return {name: one for name, one in found.items() if not name.startswith("_")}


def compression_algorithms() -> list[Algorithm]:
    """Return the algorithms of all families, by family and name; each class once."""
    found = []
    for family, (module_name, _, _) in _FAMILIES.items():
        module = importlib.import_module(module_name)
        names = [one for one in module.__all__ if one.endswith(family) and one != family]
        classes = {getattr(module, name) for name in names}
        found += [Algorithm(family, one) for one in sorted(classes, key=lambda one: one.__name__)]
    return found


def compression_pages() -> dict[str, str]:
    """Return one page per algorithm and their index, by path below the folder of pages."""
    algorithms = compression_algorithms()
    return {
        "compression/index.md": _index(algorithms),
        **{one.path: _page(one) for one in algorithms},
    }


def _index(algorithms: list[Algorithm]) -> str:
    blocks = ["# Pruners, quantizers and distillers"]
    for family, (_, guide, purpose) in _FAMILIES.items():
        rows = [
            [f"[{one.name}]({one.name.lower()}.md)", one.summary]
            for one in algorithms
            if one.family == family
        ]
        blocks += [
            f"## {family}s",
            f"A {family.lower()} {purpose}; see the [guide](../{guide}).",
            table(["Name", "Method"], rows),
        ]
    return page(*blocks)


def _page(one: Algorithm) -> str:
    module, guide, _ = _FAMILIES[one.family]
    sections = one.sections
    blocks = [
        f"# {one.name}",
        sections[""],
        f"Class: {code(f'{module}.{one.name}')}. Guide: [{guide[:-3]}](../{guide}).",
        "## Arguments",
        _arguments(one),
        "## What it supports",
        table(["Property", "Value"], _properties(one).items()),
        "## Example",
        f"```pycon\n{sections.get('Examples', '')}\n```",
    ]
    for heading in ("Source", "Departures"):
        if heading in sections:
            blocks += [f"## {heading}", sections[heading]]
    return page(*blocks)


def _arguments(one: Algorithm) -> str:
    meanings = entries_of(one.sections.get("Args", ""))
    rows = [
        [code(name), _default(argument), meanings.get(name, "")]
        for name, argument in one.arguments.items()
    ]
    return table(["Name", "Default", "Meaning"], rows)


def _default(argument: inspect.Parameter) -> str:
    if argument.default is argument.empty:
        return "required"
    return code(repr(argument.default))


def _properties(one: Algorithm) -> dict[str, str]:
    found = _of_pruner(one.cls) if one.family == "Pruner" else {}
    if issubclass(one.cls, Quantizer):
        found |= _of_quantizer(one.cls)
    evaluator = one.arguments.get("evaluator")
    needs = "not used" if evaluator is None else "optional"
    if evaluator is not None and evaluator.default is evaluator.empty:
        needs = "required"
    return found | {"evaluator": needs}


def _of_pruner(cls: type) -> dict[str, str]:
    found = {}
    if issubclass(cls, Pruner):
        granularity = str(cls.default_granularity)
        found["masks as one"] = _BLOCKS.get(granularity, granularity)
        kinds = ", ".join(sorted(cls.op_types or ()))
        found["modules"] = kinds or "all with a weight"
    names = [name for name, pruner in PRUNERS.items() if pruner is cls]
    if names:
        found["pruning_algorithm"] = names[0]
    found["step of a compression job"] = "yes" if cls.__name__ in ALGORITHMS else "no"
    return found


def _of_quantizer(cls: type[Quantizer]) -> dict[str, str]:
    return {
        "targets": ", ".join(cls.kinds),
        "bits, signed": "{} to {}".format(*cls.signed_bits),
        "bits, unsigned": "{} to {}".format(*cls.unsigned_bits),
    }
