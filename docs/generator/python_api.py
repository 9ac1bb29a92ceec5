"""Reference pages of the public Python names.

`PUBLIC_MODULES` is the one list of public modules; the public names are their `__all__`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from docs.generator.markdown import page

PUBLIC_MODULES: Final = (
    "nni",
    "nni.hpo",
    "nni.hpo.configspace",
    "nni.compression",
    "nni.compression.distillation",
    "nni.compression.experiment",
    "nni.compression.job",
    "nni.compression.speedup",
    "nni.compression.utils",
    "nni.experiment",
    "nni.experiment.config",
    "nni.feature_engineering",
    "nni.integrations",
    "nni.mutable",
    "nni.plot",
    "nni.nas",
    "nni.nas.evaluator",
    "nni.nas.hub.pytorch",
    "nni.nas.hub.pytorch.modules",
    "nni.nas.nn.pytorch",
    "nni.nas.space",
    "nni.nas.utils",
    "nni.annotation",
    "nni.common.hpo_utils",
    "nni.common.serializer",
    "nni.testing",
    "nni.utils",
)
"""Modules whose `__all__` is public: changing a name in one is announced in the changelog."""

_OPTIONS: Final = """\
    options:
      show_root_heading: false
      show_root_toc_entry: false
      inherited_members:
        [result, set_user_attr, suggest_categorical, suggest_float, suggest_int, to_dataframe]"""
"""The inherited members are those that a base without a reference has for several classes."""
_WITHOUT_DOCUMENTATION: Final = frozenset({"__version__"})
_NAMED_AFTER_TORCH: Final = "nni.nas.nn.pytorch.mutable_layers"
"""Module of a class for each one of torch, whose documentation is that of torch."""


def python_pages() -> dict[str, str]:
    """Return one page per public module, by path below the folder of pages."""
    pages = {f"reference/python/{name}.md": _page(name) for name in PUBLIC_MODULES}
    rows = "\n".join(
        f"- [`{name}`]({name}.md): {_first_line(import_module(name).__doc__)}"
        for name in PUBLIC_MODULES
    )
    introduction = "Every public name, by the module from which it is imported."
    return {"reference/python/index.md": page("# Python API", introduction, rows), **pages}


def public_names(module_name: str) -> list[str]:
    """Return the names of a public module that have a reference, sorted."""
    module = import_module(module_name)
    return sorted(
        name
        for name in module.__all__
        if name not in _WITHOUT_DOCUMENTATION
        and f"{module_name}.{name}" not in PUBLIC_MODULES
        and getattr(getattr(module, name), "__module__", "") != _NAMED_AFTER_TORCH
    )


def home_of(module_name: str, name: str) -> str:
    """Return the dotted path where a public name is defined."""
    value = getattr(import_module(module_name), name)
    defined_in = getattr(value, "__module__", None)
    qualified = getattr(value, "__qualname__", None)
    if isinstance(defined_in, str) and isinstance(qualified, str) and defined_in.startswith("nni"):
        return f"{defined_in}.{qualified}"
    return f"{module_name}.{name}"


def _page(module_name: str) -> str:
    blocks = [f"# {module_name}", _first_line(import_module(module_name).__doc__)]
    for name in public_names(module_name):
        blocks += [f"## {name}", f"::: {home_of(module_name, name)}\n{_OPTIONS}"]
    return page(*blocks)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
