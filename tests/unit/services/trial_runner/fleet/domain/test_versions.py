"""Tests of the comparison of NNI's versions on two machines."""

import pytest

from svc_common.errors import FailedPreconditionError
from svc_trial_runner.fleet.domain.versions import version_warning


@pytest.mark.parametrize("there", ["4.2.1", "unknown", "dev", "4", "4.dev", "4.\u00b3", "a.2"])
def test_equal_or_unknown_versions_have_no_warning(there: str) -> None:
    assert version_warning("4.2.1", there) == ""


def test_versions_that_differ_in_the_last_part_have_a_warning() -> None:
    assert version_warning("4.2.1", "4.2.0") == (
        "this machine has NNI 4.2.0, and the installation has NNI 4.2.1"
    )


@pytest.mark.parametrize("there", ["4.1.1", "3.2.1"])
def test_versions_that_do_not_understand_each_other_are_refused(there: str) -> None:
    with pytest.raises(FailedPreconditionError, match=r"install a version that begins with 4\.2"):
        version_warning("4.2.1", there)


def test_unknown_version_here_has_no_warning() -> None:
    assert version_warning("unknown", "4.2.1") == ""
