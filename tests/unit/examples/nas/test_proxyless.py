"""The example runs with shorter trainings than in its README."""

from pathlib import Path

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


# Lightning 2.6 calls functions of torch 2.13 that are deprecated.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_large_penalty_leaves_nothing_but_skips(scripts: Scripts, tmp_path: Path) -> None:
    # With the penalty alone, 36 steps of 0.03 move the logits of skips above all others.
    printed = scripts(
        "nas/proxyless/search.py", "--epochs", 2, "--retrain-epochs", 1, "--scale", 100
    )

    assert (tmp_path / "search" / "latency.json").is_file()
    none, latency = (line.split(maxsplit=3) for line in printed.splitlines()[-2:])
    assert (none[0], latency[0]) == ("none", "latency")
    assert latency[3].count("skip") == 3
    assert float(latency[1]) <= float(none[1])
