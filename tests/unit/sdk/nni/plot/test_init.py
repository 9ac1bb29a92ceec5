"""Imports of the package: names are loaded when they are used."""

import subprocess
import sys

import pytest

import nni.plot


def test_every_exported_name_has_its_home() -> None:
    for name in nni.plot.__all__:
        assert getattr(nni.plot, name).__module__.startswith("nni.plot.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scatter'"):
        _ = nni.plot.scatter


def test_import_loads_no_library_that_draws() -> None:
    code = (
        "import sys, nni.plot; nni.plot.history; nni.plot.contour; "
        "print({'plotly', 'matplotlib', 'numpy'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
