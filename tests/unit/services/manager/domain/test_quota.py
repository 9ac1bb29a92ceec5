from __future__ import annotations

import pytest

from svc_manager.domain.quota import Quota, excess, sized

MB = 1_000_000


def why(quota: Quota, size: int, total: int = 0, experiment: str = "e1", own: int = 0) -> str:
    return excess(
        quota,
        size_bytes=size,
        installation_used_bytes=total,
        experiment_id=experiment,
        experiment_used_bytes=own,
    )


def test_what_fits_exactly_may_come() -> None:
    assert why(Quota(10, 5), 5, total=5) == ""


def test_excess_of_an_experiment_names_limit_use_and_remedy() -> None:
    text = why(Quota(0, 5 * MB), 2 * MB, own=4 * MB)

    assert "at most 5.0 MB for an experiment" in text
    assert "e1 uses 4.0 MB" in text
    assert "2.0 MB more" in text
    assert "NNI_EXPERIMENT_QUOTA_BYTES" in text


def test_excess_of_the_installation_names_limit_use_and_remedy() -> None:
    text = why(Quota(5 * MB, 0), 2 * MB, total=4 * MB, experiment="")

    assert "at most 5.0 MB, 4.0 MB are used" in text
    assert "nnictl storage clean" in text
    assert "NNI_QUOTA_BYTES" in text


def test_zero_is_no_limit() -> None:
    assert why(Quota(0, 0), 10**18, total=10**18, own=10**18) == ""


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (10**6, "1.0 MB"),
        (10**9, "1.0 GB"),
        (10**12, "1.0 TB"),
        (1500, "1.5 kB"),
        (2 * 10**9, "2.0 GB"),
        (5 * 10**12, "5.0 TB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert sized(size) == text
