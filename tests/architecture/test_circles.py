"""No modules or folders import each other, in however many steps; nor for the sake of types."""

from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import TopologicalSorter

import grimp
import pytest

PACKAGES = (
    "nni",
    "nni_benchmark",
    "svc_common",
    "svc_manager",
    "svc_dispatcher",
    "svc_compressor",
    "svc_nas",
    "svc_trial_runner",
    "svc_standalone",
)
AREAS = ("nni.compression", "nni.hpo", "nni.nas")
"""Packages of several folders, which import each other in one direction, too."""


@cache
def graph_of(package: str) -> grimp.ImportGraph:
    return grimp.build_graph(package, cache_dir=None)


def part_of(module: str) -> str:
    """Return the top-level module or folder of a package that a module is, or is in."""
    return ".".join(module.split(".")[:2])


def imports_of_parts(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return which parts each part of a package imports; a package's own module is a part."""
    parts: dict[str, set[str]] = {}
    for module, imported in imports.items():
        own = part_of(module)
        parts.setdefault(own, set()).update({part_of(name) for name in imported} - {own})
    return parts


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_and_folders_import_each_other_in_one_direction(package: str) -> None:
    graph = graph_of(package)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    parts = imports_of_parts(imports)

    # A circle is a CycleError that names its members.
    order = list(TopologicalSorter(imports).static_order())
    order_of_parts = list(TopologicalSorter(parts).static_order())

    assert set(order) == graph.modules
    assert set(order_of_parts) == parts.keys()


@pytest.mark.parametrize("area", AREAS)
def test_folders_of_an_area_import_each_other_in_one_direction(area: str) -> None:
    graph = graph_of("nni")
    parts: dict[str, set[str]] = {}

    for module in graph.find_descendants(area):
        own = folder_of(module, area, graph)
        imported = {
            folder_of(name, area, graph)
            for name in graph.find_modules_directly_imported_by(module)
            if name.startswith(f"{area}.")
        }
        parts.setdefault(own, set()).update(imported - {own})

    assert len(parts) > 10
    assert set(TopologicalSorter(parts).static_order()) == parts.keys()


def folder_of(module: str, area: str, graph: grimp.ImportGraph) -> str:
    """Return the folder or module of an area that a module is in.

    The list of names in the `__init__` of a folder stands for itself, as it may also have names of
    folders above.
    """
    folder = ".".join(module.split(".")[: area.count(".") + 2])
    is_list_of_names = module == folder and graph.find_children(module)
    return f"{module}.__init__" if is_list_of_names else folder
