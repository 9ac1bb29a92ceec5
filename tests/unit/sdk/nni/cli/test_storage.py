from __future__ import annotations

import pytest

from nni.cli.storage import sized


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1500, "1.5 kB"), (3 * 10**12, "3.0 TB")]
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert sized(size) == text
