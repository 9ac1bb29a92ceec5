"""Platforms that tests need: a test without one is skipped, or fails where they are required."""

import importlib.util
import os
import shutil
from typing import Final

import pytest

SSHD: Final = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
"""OpenSSH's server; None: it is not installed."""
_REQUIRED: Final = "NNI_REQUIRE_PLATFORMS"
"""Set to 1 in CI, where no such test may be skipped."""


def require_platform(reason: str) -> None:
    """Skip a test or a module for a reason; fail it if platforms are required."""
    if os.environ.get(_REQUIRED) == "1":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def is_left_to_platform_tests() -> bool:
    """Return whether this is a run of CI other than `.ci/platforms`."""
    return "CI" in os.environ and os.environ.get(_REQUIRED) != "1"


def leave_to_platform_tests() -> None:
    """Skip a test or a module in CI except in `.ci/platforms`."""
    if is_left_to_platform_tests():
        pytest.skip("run by .ci/platforms", allow_module_level=True)


def reason_without_openssh() -> str:
    """Return what is missing for tests with OpenSSH's server; empty: nothing."""
    if importlib.util.find_spec("asyncssh") is None:
        return "the extra remote is not installed: no asyncssh"
    return "" if SSHD else "OpenSSH's sshd is not installed (Debian: openssh-server)"
