"""The example runs with fewer epochs than in its README."""

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_half_of_the_heads_are_removed_by_either_ranking(scripts: Scripts) -> None:
    name = "compression/attention-heads/prune.py"
    lines = scripts(name, "--epochs", 2, "--tuning-epochs", 1).splitlines()

    rows = {line[:20].strip(): line[20:].split() for line in lines[1:] if line[0] != " "}
    assert list(rows) == ["dense", "l1_weight", "taylorfo"]
    # Four projections of 32 x 32 with bias in two layers; half of them go, but for 32 biases.
    removed = 2 * 4 * 16 * 32 + 2 * 3 * 16
    assert rows["dense"][1] == "17,962"
    for ranking in ("l1_weight", "taylorfo"):
        assert rows[ranking][1] == f"{17_962 - removed:,}"
        assert float(rows[ranking][0]) > 20  # guessing gives 10; the README trains for longer
    heads = [line.count(",") for line in lines if "heads removed" in line]
    assert heads == [4, 4]  # [[a, b], [c, d]], and one comma of the text
