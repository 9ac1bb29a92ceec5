import subprocess
import sys
from importlib import import_module

import pytest

import nni.experiment


@pytest.mark.parametrize("name", nni.experiment.__all__)
def test_export_comes_from_its_home(name: str) -> None:
    home = import_module(nni.experiment._HOMES[name])

    assert getattr(nni.experiment, name) is getattr(home, name)


def test_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Experimental'"):
        _ = nni.experiment.Experimental


def test_names_that_are_not_loaded_yet_are_listed() -> None:
    assert set(nni.experiment.__all__) <= set(dir(nni.experiment))


HEAVY = (
    *("asyncio", "google.protobuf", "grpc", "nni.annotation", "nni.experiment.client"),
    *("nni.experiment.config", "nni.hpo", "nni_proto", "numpy", "pathspec", "psutil", "pydantic"),
    *("ssl", "urllib.request", "yaml"),
)
"""Modules that a script needs when it makes an experiment, and not before."""


def test_import_of_the_class_loads_nothing_that_takes_long() -> None:
    program = (
        "import sys; from nni.experiment import Experiment, RunMode;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
