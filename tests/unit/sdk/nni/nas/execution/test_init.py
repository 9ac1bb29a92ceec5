import subprocess
import sys

import pytest

from nni.nas import execution


def test_the_contract_needs_no_torch() -> None:
    code = "import sys, nni.nas.execution; print({'torch', 'numpy', 'grpc'} & set(sys.modules))"

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout == "set()\n"


def test_public_names_are_listed() -> None:
    assert set(execution.__all__) <= set(dir(execution))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = execution.nothing
