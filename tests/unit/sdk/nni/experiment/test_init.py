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


def test_import_loads_no_grpc() -> None:
    program = "import sys, nni.experiment\nassert 'grpc' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
