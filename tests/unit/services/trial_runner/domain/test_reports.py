import os
import signal

import pytest

from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_trial_runner.domain.reports import (
    AttemptLost,
    AttemptWaits,
    ended_by_shutdown_signal,
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


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, True),
        (signal.SIGTERM, True),
        (signal.SIGINT, True),
        (signal.SIGHUP, True),
        (143 << 8, True),
        (130 << 8, True),
        (129 << 8, True),
        (0, False),
        (1 << 8, False),
        (signal.SIGTERM << 8, False),
        (128 << 8, False),
        (137 << 8, False),
        (signal.SIGKILL, False),
        (signal.SIGSEGV | 0x80, False),
    ],
)
def test_ends_by_signals_of_a_shutdown(status: int | None, *, expected: bool) -> None:
    assert ended_by_shutdown_signal(status) is expected


def test_core_dump_is_a_signal() -> None:
    assert split_wait_status(11 | 0x80) == (None, 11)


def test_last_reports() -> None:
    assert is_last(AttemptLost(LossReason(LossCause.AGENT_FAILED, detail="gone")))
    assert not is_last(AttemptWaits(WaitReason(WaitCause.BLOB, object="no GPU")))
