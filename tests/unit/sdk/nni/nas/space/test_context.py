"""Contexts in which constructors build fixed networks."""

import pytest
from torch import nn

import nni.nas
from nni.mutable import SampleMissingError
from nni.nas.nn.pytorch import LayerChoice
from nni.nas.space import current_model, model_context
from nni.nas.space.context import unfixed_constructors


def test_context_is_exported_from_both_places() -> None:
    assert nni.nas.model_context is model_context


def test_inner_context_wins_until_it_ends() -> None:
    with model_context({"a": 1}):
        with model_context({"a": 2}):
            inner = current_model()
        outer = current_model()

    assert (inner, outer, current_model()) == ({"a": 2}, {"a": 1}, None)


def test_current_sample_is_a_copy() -> None:
    with model_context({"a": 1}):
        sample = current_model()
        assert sample is not None
        sample["a"] = 2

        assert current_model() == {"a": 1}


def test_path_is_refused() -> None:
    with pytest.raises(TypeError, match=r"sample must be a dict .* got str"), model_context("a"):  # type: ignore[arg-type]
        pass


def test_missing_label_is_named() -> None:
    with model_context({"b": 0}), pytest.raises(SampleMissingError, match="label 'a'"):
        LayerChoice([nn.ReLU()], label="a")


def test_labels_that_no_mutable_has_are_ignored() -> None:
    with model_context({"a": 0, "learning_rate": 0.1}):
        layer = LayerChoice([nn.ReLU()], label="a")

    assert isinstance(layer, nn.ReLU)


def test_constructors_can_build_spaces_inside() -> None:
    with model_context({"a": 0}):
        with unfixed_constructors():
            layer: object = LayerChoice([nn.ReLU()], label="a")
        inside = current_model()

    assert isinstance(layer, LayerChoice)
    assert inside == {"a": 0}
