"""Presence of the libraries that benchmarks compare with."""

from __future__ import annotations

import os

import pytest

from nni_benchmark.runs import installed
from nni_benchmark.searcher import Searcher


def require_peer(peer: Searcher) -> None:
    """Skip the test if packages of a peer are missing; fail if NNI_REQUIRE_SERVICES=1."""
    if installed(peer):
        return
    reason = f"{', '.join(peer.packages)} are not installed: pip install 'nni-benchmark[peers]'"
    if os.environ.get("NNI_REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
