"""Recorder of tables."""

from pathlib import Path

import numpy as np
import pytest

from nni_benchmark.recording import TABULATED_MODELS, data_set, record, recorded_names


@pytest.mark.parametrize("name", TABULATED_MODELS)
def test_models_have_the_parameters_of_a_configuration(name: str) -> None:
    described = TABULATED_MODELS[name]
    point = {
        key: described.grid[key][0] if key in described.grid else entry["_value"][0]
        for key, entry in described.space.items()
    }

    for regression in (False, True):
        parameters = described.build(point, regression=regression).get_params()

        for key, value in point.items():
            assert parameters[described.names.get(key, key)] == value


def test_features_are_standardised_and_rows_are_limited() -> None:
    x, y, regression = data_set("diabetes")

    assert regression
    assert x.shape == (300, 10)
    assert np.allclose(x.mean(axis=0), 0)
    assert np.allclose(x.std(axis=0), 1)
    assert np.isclose(y.std(), 1)


def test_classes_are_not_scaled() -> None:
    _, y, regression = data_set("wine", None)

    assert not regression
    assert set(y) == {0, 1, 2}


def test_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"name must be one of curves-digits-mlp, .*; got 'x'"):
        record("x", tmp_path)
    assert len(recorded_names()) == len(set(recorded_names()))
