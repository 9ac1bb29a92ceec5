"""The one place where scikit-learn is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.timeout(150)  # imports numpy and scipy
@pytest.mark.parametrize("module", ["gbdt_selector", "gradient_selector"])
def test_a_missing_library_is_an_error_that_names_the_extra(module: str) -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        f"import nni.algorithms.feature_engineering.{module}"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )

    assert "need scikit-learn 1.6 or newer; run: pip install 'nni[feature]'" in done.stderr
