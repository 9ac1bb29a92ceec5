"""Reading imported samples."""

import pytest

from nni.hpo.samples import Sample, samples


def test_well_formed_samples_are_read_in_order() -> None:
    data = [{"parameter": {"x": 1}, "value": 2, "more": 3}, {"parameter": [1]}]

    assert list(samples(data)) == [Sample({"x": 1}, 2), Sample([1], None)]


def test_other_items_are_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    assert list(samples([{"value": 1}, 3, {"parameter": 1, "value": 1}])) == [Sample(1, 1)]
    assert caplog.text.count("must be a dict with 'parameter'") == 2


def test_data_that_is_no_list_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert list(samples({"parameter": 1})) == []
    assert "must be a list" in caplog.text
