"""Searchers of the AutoML benchmark, named or read from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.hpo.registry.registrations import register, unregister
from nni_benchmark.automl.frameworks import frameworks_of, read_frameworks
from nni_benchmark.automl.runner import Framework
from nni_benchmark.command import main


@pytest.mark.claim("hpo", 54)
def test_registered_tuner_is_named_in_a_framework_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    class_name = "nni.hpo.tuners.random_search.RandomTuner"
    register({"algoType": "tuner", "builtinName": "Demo", "className": class_name})
    file = tmp_path / "frameworks.yaml"
    file.write_text("Mine:\n  extends: NNI\n  params: {tuner_type: Demo, trial_limit: 2}\n")
    output = tmp_path / "results"
    tasks = tmp_path / "tasks.yml"
    tasks.write_text("- {name: iris, metric: logloss, folds: 1}\n")

    line = ["automl", "Mine", "Demo", "--frameworks", str(file), "--benchmark", str(tasks)]

    status = main([*line, "--trials", "2", "--trees", "8", "--output", str(output)])

    assert status == 0
    assert "iris 0 logloss Mine" in (output / "reports" / "performances.txt").read_text()
    # Both are random search with one seed, and tie.
    rankings = (output / "reports" / "rankings.txt").read_text()
    assert rankings == "tuner logloss\nMine 1.5000\nDemo 1.5000\n"
    assert "reports are in" in capsys.readouterr().out
    unregister("Demo")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "must hold a dict"),
        ("A: 3", "extends NNI"),
        ("A: {extends: other}", "extends NNI"),
        ("A: {params: {tuner: TPE}}", "params must be of"),
        ("A: {params: {limit_type: days}}", "limit_type must be"),
        ("A: {params: {tuner_type: Nope}}", "tuner name must be one of"),
    ],
)
def test_wrong_framework_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "frameworks.yaml"
    file.write_text(text)

    with pytest.raises(ValueError, match=reason):
        read_frameworks(file)


def test_bare_names_take_the_limits_of_the_command() -> None:
    default = Framework("Random", "mlp", 7, 9.0)

    (framework,) = frameworks_of(["TPE"], {}, default)

    assert (framework.tuner, framework.architecture, framework.trials) == ("TPE", "mlp", 7)
    assert len(frameworks_of([], {}, default)) == 8
