from svc_common.errors import InvalidArgumentError, LostOwnershipError, NotFoundError


def test_invalid_argument_names_field_rule_value_and_remedy() -> None:
    error = InvalidArgumentError("trial_concurrency", "must be >= 1", 0, "use 1")

    assert str(error) == "trial_concurrency must be >= 1, got 0; use 1"
    assert error.facts == {
        "field": "trial_concurrency",
        "rule": "must be >= 1",
        "value": "0",
        "remedy": "use 1",
    }


def test_invalid_argument_without_a_value_shows_none() -> None:
    assert str(InvalidArgumentError("name", "must be set")) == "name must be set"


def test_not_found_names_kind_and_id() -> None:
    assert str(NotFoundError("experiment", "abc")) == "there is no experiment 'abc'"


def test_lost_ownership_has_the_found_end_of_the_log() -> None:
    error = LostOwnershipError("e", expected_sequence=3, found_sequence=5, found_epoch=2)

    assert (error.expected_sequence, error.found_sequence, error.found_epoch) == (3, 5, 2)
    assert "owns experiment 'e'" in error.message
