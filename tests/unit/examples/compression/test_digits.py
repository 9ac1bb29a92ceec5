"""The example runs with fewer epochs than in its README."""

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_every_route_gives_a_smaller_network_that_classifies(scripts: Scripts) -> None:
    printed = scripts("compression/digits/prune.py", "--epochs", 2, "--tuning-epochs", 1)

    rows = [(line[:20].strip(), *line[20:].split()) for line in printed.splitlines()[1:]]
    table = {row[0]: row[1:] for row in rows}
    assert list(table) == ["dense", "one-shot L1", "AGP", "lottery ticket"]
    # Half of the channels of 16, 32 and 64, and their weights on both sides.
    assert table.pop("dense")[1:3] == ("24,170", "599,680")
    for accuracy, parameters, flops, _latency, _ratio in table.values():
        assert (parameters, flops) == ("6,330", "152,384")
        assert float(accuracy) > 50  # guessing gives 10; the README trains for more epochs


@pytest.mark.timeout(180)  # the first export to ONNX in a process imports for long
def test_quantized_network_is_as_good_in_onnxruntime(scripts: Scripts) -> None:
    printed = scripts("compression/digits/quantize.py", "--epochs", 1, "--tuning-epochs", 1)

    table = {line[:24].strip(): line[24:].split() for line in printed.splitlines()[1:]}
    assert list(table) == ["dense", "pruned", "pruned, int8, simulated", "the same in onnxruntime"]
    pruned, simulated, run = (float(row[0]) for row in list(table.values())[1:])
    assert pruned > 30  # guessing gives 10
    assert abs(run - simulated) < 1  # points; one image is 0.2
    assert abs(simulated - pruned) < 10
