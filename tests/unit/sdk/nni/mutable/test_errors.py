"""Errors of samples say where and why."""

import pickle

from nni.mutable import ConstraintViolation, SampleMissingError, SampleValidationError


def test_path_is_shown_from_the_root_to_the_leaf() -> None:
    error = SampleValidationError("must be 1").inside("leaf").inside("root")

    assert error.paths == ["leaf", "root"]
    assert str(error) == "must be 1 (in root -> leaf)"


def test_message_without_a_path_is_alone() -> None:
    assert str(ConstraintViolation("too large")) == "too large"


def test_missing_label_shows_the_known_ones() -> None:
    error = SampleMissingError.of("depth", ["width"])

    assert "no value for label 'depth'; its labels are ['width']" in str(error)


def test_many_known_labels_are_cut_off() -> None:
    text = str(SampleMissingError.of("depth", [f"x{at}" for at in range(25)]))

    assert "x19" in text
    assert "x20" not in text
    assert "and 5 more" in text


def test_errors_are_value_errors_and_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(SampleMissingError("no value").inside("leaf")))

    assert isinstance(error, ValueError)
    assert isinstance(error, SampleMissingError)
    assert error.paths == ["leaf"]
    assert str(error) == "no value (in leaf)"
