"""Imports of the package: names are loaded when they are used, and a missing library is named."""

import json
import subprocess
import sys

import pytest

import nni.integrations

LIBRARIES = {
    "LightningCallback": ("pytorch_lightning", "lightning"),
    "LightGBMCallback": ("lightgbm",),
    "NNISearchCV": ("sklearn",),
    "OptunaTuner": ("optuna",),
    "TransformersCallback": ("transformers",),
    "XGBoostCallback": ("xgboost",),
}
"""Libraries whose absence makes a name unusable."""


def output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_exported_name_is_listed() -> None:
    assert nni.integrations._HOMES.keys() == set(nni.integrations.__all__)
    assert set(nni.integrations.__all__) <= set(dir(nni.integrations))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'KedroHook'"):
        _ = nni.integrations.KedroHook


def test_import_loads_standard_modules_only() -> None:
    code = (
        "import sys, importlib, typing; before = set(sys.modules); import nni.integrations; "
        "print(sorted(set(sys.modules) - before))"
    )

    assert output_of(code) == "['nni', 'nni.integrations', 'nni.version']\n"


def test_a_callback_without_keras_is_an_error_that_names_the_extra() -> None:
    code = """
import sys
import nni.integrations
sys.modules["keras"] = None
try:
    nni.integrations.KerasCallback("loss")
except ImportError as error:
    print(error)
"""

    assert "needs Keras 3; run: pip install 'nni[keras]'" in output_of(code)


def test_a_missing_library_is_an_error_that_names_the_extra() -> None:
    code = f"""
import json, sys
import nni.integrations
errors = {{}}
for name, libraries in {LIBRARIES!r}.items():
    sys.modules.update(dict.fromkeys(libraries))
    try:
        getattr(nni.integrations, name)
    except ImportError as error:
        errors[name] = str(error)
print(json.dumps(errors))
"""

    errors = json.loads(output_of(code))

    assert errors.keys() == LIBRARIES.keys()
    for name, text in errors.items():
        assert text.startswith("nni.integrations."), name
        assert "; run: pip install 'nni[" in text
