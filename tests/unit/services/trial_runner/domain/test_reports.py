import os

import pytest

from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_trial_runner.domain.reports import (
    AttemptLost,
    AttemptWaits,
    is_last,
    shell_code,
    split_wait_status,
)


@pytest.mark.parametrize(
    ("status", "code", "signal", "shell"), [(0, 0, 0, 0), (3 << 8, 3, 0, 3), (9, None, 9, 137)]
)
def test_wait_status_is_code_or_signal(
    status: int, code: int | None, signal: int, shell: int
) -> None:
    assert split_wait_status(status) == (code, signal)
    assert shell_code(code, signal) == shell
    expected = os.waitstatus_to_exitcode(status)
    assert expected == (code if code is not None else -signal)


def test_core_dump_is_a_signal() -> None:
    assert split_wait_status(11 | 0x80) == (None, 11)


def test_last_reports() -> None:
    assert is_last(AttemptLost(LossReason(LossCause.AGENT_FAILED, detail="gone")))
    assert not is_last(AttemptWaits(WaitReason(WaitCause.BLOB, object="no GPU")))
