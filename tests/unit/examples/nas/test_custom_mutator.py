"""The example runs with fewer and shorter trainings than in its README."""

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_best_network_is_printed_as_code(scripts: Scripts) -> None:
    printed = scripts("nas/custom-mutator/search.py", "--models", 2, "--epochs", 1)

    first, _, code = printed.partition("\n\n")
    assert "'first/0':" in first
    assert "'skip_second':" in first
    assert float(first.split()[0]) > 20  # guessing gives 10
    assert "class _model(torch.nn.Module):" in code
    assert "blocks.Plain(" in code or "blocks.Separable(" in code
