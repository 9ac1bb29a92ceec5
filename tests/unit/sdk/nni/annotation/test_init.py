import subprocess
import sys

import pytest

import nni.annotation


@pytest.mark.parametrize("name", nni.annotation.__all__)
def test_export_comes_from_its_home(name: str) -> None:
    value = getattr(nni.annotation, name)

    assert value.__module__ == nni.annotation._HOMES[name]
    assert name in dir(nni.annotation)


def test_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'unknown'"):
        _ = nni.annotation.unknown


def test_converted_code_loads_no_converter() -> None:
    program = (
        "import sys, nni.annotation.runtime\nassert 'nni.annotation.conversion' not in sys.modules"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
