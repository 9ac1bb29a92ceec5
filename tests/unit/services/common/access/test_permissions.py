"""Rules of RPCs; `tests/architecture/test_permissions.py` requires a row for each."""

import pytest

from svc_common.access.permissions import RENEWS, RULE_BY_METHOD, rule_of_method
from svc_common.access.roles import Role

READING = ("Get", "List", "Describe", "Follow", "Count", "Explain", "Export", "Wait", "Diagnose")


def test_unknown_method_requires_an_administrator() -> None:
    rule = rule_of_method("/nni_proto.experiment.v1.ExperimentService/Forgotten")

    assert (rule.role, rule.audited) == (Role.ADMIN, True)


@pytest.mark.parametrize("method", RULE_BY_METHOD)
def test_viewers_may_call_reading_methods_only(method: str) -> None:
    name = method.rpartition("/")[2]

    if name.startswith(READING):
        assert rule_of_method(method).role is Role.VIEWER
        assert not rule_of_method(method).audited


@pytest.mark.parametrize("method", RULE_BY_METHOD)
def test_agents_may_transfer_blobs_only(method: str) -> None:
    allowed = rule_of_method(method).agents

    assert allowed == method.endswith(
        ("PrepareUpload", "/Upload", "CompleteUpload", "PrepareDownload", "/Download")
    )


@pytest.mark.parametrize("method", RULE_BY_METHOD)
def test_calls_above_the_role_viewer_are_audited_but_for_renewals(method: str) -> None:
    rule = rule_of_method(method)

    assert rule.audited == (rule.role is not Role.VIEWER and rule is not RENEWS)
