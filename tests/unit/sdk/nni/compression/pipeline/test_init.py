import subprocess
import sys

import pytest

from nni.compression import pipeline


def test_every_public_name_is_found() -> None:
    assert all(getattr(pipeline, name) is not None for name in pipeline.__all__)
    assert set(pipeline.__all__) <= set(dir(pipeline))


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Pipe'"):
        pipeline.Pipe  # noqa: B018 - its access is the test


def test_a_budget_is_checked_without_torch() -> None:
    program = (
        "import sys, nni.compression.pipeline as own; own.Budget(metric=1); "
        "assert 'torch' not in sys.modules"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
