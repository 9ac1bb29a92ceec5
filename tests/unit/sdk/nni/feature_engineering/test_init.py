"""Imports of the package: what is missing is named only when it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nni.feature_engineering

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Missing())
"""
"""Start of a program in which some packages are not installed."""


def run(code: str, *missing: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing) + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_exported_name_has_its_home() -> None:
    for name in nni.feature_engineering.__all__:
        assert getattr(nni.feature_engineering, name) is not None
    assert set(nni.feature_engineering.__all__) <= set(dir(nni.feature_engineering))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = nni.feature_engineering.Missing


def test_the_base_class_needs_no_other_library() -> None:
    done = run(
        "from nni.feature_engineering import FeatureSelector\nprint(FeatureSelector.__name__)",
        *("lightgbm", "numpy", "scipy", "sklearn", "torch"),
    )

    assert done.stdout == "FeatureSelector\n", done.stderr


@pytest.mark.timeout(150)  # imports scikit-learn
def test_selectors_are_imported_without_torch_and_lightgbm_and_name_the_extra_in_use() -> None:
    done = run(
        "from nni.feature_engineering import FeatureGradientSelector, GBDTSelector\n"
        "table, target = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]\n"
        "trees = GBDTSelector({'objective': 'binary'}, 0.5, 1, 'gain', 1)\n"
        "for selector in (FeatureGradientSelector(), trees):\n"
        "    try:\n"
        "        selector.fit(table, target)\n"
        "    except ImportError as error:\n"
        "        print(error)\n",
        *("lightgbm", "torch"),
    )

    assert done.stdout.splitlines() == [
        "FeatureGradientSelector needs torch; run: pip install 'nni[feature]'",
        "GBDTSelector needs LightGBM; run: pip install 'nni[feature]'",
    ], done.stderr
