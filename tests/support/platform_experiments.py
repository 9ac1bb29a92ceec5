"""A small experiment for every platform: four trials, whose results are 1, 2, 3 and 4."""

from pathlib import Path

from tests.support.nnictl import Nnictl

_CONFIG = """\
searchSpace: {{x: {{_type: choice, _value: [1, 2, 3, 4]}}}}
trialCommand: python3 trial.py
trialCodeDirectory: {folder}
trialConcurrency: 2
maxTrialNumber: 4
tuner: {{name: GridSearch}}
trainingService:
{service}"""


def write_experiment(folder: Path, trial: str, service: str) -> Path:
    """Write a folder with the script of the trials and the configuration.

    Args:
        folder: of the code; it is made.
        trial: text of the script.
        service: YAML of `trainingService`, indented by two spaces.

    Returns:
        Path of the configuration.
    """
    folder.mkdir()
    (folder / "trial.py").write_text(trial)
    path = folder / "config.yml"
    path.write_text(_CONFIG.format(folder=folder, service=service))
    return path


def assert_each_counted_once(nnictl: Nnictl, experiment: str) -> None:
    """Assert that the four trials succeeded with the four results."""
    trials = nnictl.trials(experiment)
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 4
    assert sorted(trial["finalMetricData"][0]["data"] for trial in trials) == [1, 2, 3, 4]


def first_log(nnictl: Nnictl, experiment: str) -> str:
    """Return the output of the first trial."""
    trial = nnictl.trials(experiment)[0]["trialJobId"]
    return nnictl("log", "trial", experiment, "-T", trial, "--follow").stdout
