"""No modules import each other, in however many steps; nor for the sake of types."""

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


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_import_each_other_in_one_direction(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}

    order = list(TopologicalSorter(imports).static_order())  # else a CycleError that names them

    assert set(order) == graph.modules
