"""The example runs with fewer trials than in its README."""

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_trials_of_both_libraries_are_in_one_study(scripts: Scripts) -> None:
    printed = scripts("integrations/optuna/bridge.py", 5)

    assert "TPESampler in NNI: " in printed
    assert "TPE of NNI in Optuna: " in printed
    assert "both, 10 trials: " in printed
