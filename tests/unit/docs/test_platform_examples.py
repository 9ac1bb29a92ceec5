"""The configurations of `examples/platforms` are valid, and differ only in their platform."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from nni.experiment.config import ExperimentConfig
from nni.experiment.config.checks import check
from nni.experiment.config.pool_file import PoolFile
from nni.experiment.config.training_services import PLATFORMS as BUILT_IN

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "platforms"
PLATFORMS: Final = {
    "local.yml": ["local"],
    "remote.yml": ["remote"],
    "slurm.yml": ["slurm"],
    "kubernetes.yml": ["kubernetes"],
    "ray.yml": ["ray"],
    "kubeflow.yml": ["kubeflow"],
    "frameworkcontroller.yml": ["frameworkcontroller"],
    "adl.yml": ["adl"],
    "openpai.yml": ["openpai"],
    "aml.yml": ["aml"],
    "dlc.yml": ["dlc"],
    "hybrid.yml": ["local", "remote"],
    "pool.yml": ["pool"],
}
"""File of the example to the platforms in it."""
POOL: Final = "pool-definition.yml"


def load(name: str) -> ExperimentConfig:
    return ExperimentConfig.load(EXAMPLE / name)


@pytest.mark.parametrize("name", PLATFORMS)
def test_configuration_is_valid(name: str) -> None:
    config = load(name)

    check(config)
    assert [service.platform for service in config.training_services()] == PLATFORMS[name]


def test_every_file_and_every_platform_is_covered() -> None:
    assert {file.name for file in EXAMPLE.glob("*.yml")} == {*PLATFORMS, POOL}
    assert {platform for used in PLATFORMS.values() for platform in used} == set(BUILT_IN)


@pytest.mark.parametrize("name", [name for name in PLATFORMS if name != "local.yml"])
def test_configurations_differ_only_in_name_and_platform(name: str) -> None:
    fields, first = (load(one).to_dict() for one in (name, "slurm.yml"))

    for only in ("experimentName", "trainingService"):
        del fields[only], first[only]
    assert fields == first


def test_local_configuration_is_a_shorter_run_of_the_same_search() -> None:
    fields, other = (load(one).to_dict() for one in ("local.yml", "slurm.yml"))

    assert {name for name in fields if fields[name] != other[name]} == {
        "experimentName",
        "trialCommand",
        "trialConcurrency",
        "maxTrialNumber",
        "trainingService",
    }


def test_no_configuration_holds_a_password() -> None:
    for file in EXAMPLE.glob("*.yml"):
        assert not re.search(
            r"^\s*\w*(password|passphrase|token)\w*:",
            file.read_text(),
            re.IGNORECASE | re.MULTILINE,
        )


def test_pool_of_the_experiment_is_the_one_that_the_definition_makes() -> None:
    pool = PoolFile.load(EXAMPLE / POOL)
    (section,) = load("pool.yml").training_services()

    assert pool.problems() == []
    assert section.to_dict()["name"] == pool.name
    assert (pool.slots or 0) >= (load("pool.yml").trial_concurrency or 0)


def test_readme_names_every_file_and_no_other() -> None:
    readme = (EXAMPLE / "README.md").read_text("utf-8")

    table = re.findall(r"^\| `([\w-]+\.yml)` \|", readme, re.MULTILINE)
    commands = re.findall(r"examples/platforms/([\w.-]+)", readme)
    assert table == list(PLATFORMS)
    assert POOL in commands
    assert all((EXAMPLE / name).is_file() for name in commands)


def run_trial(folder: Path, epochs: int) -> str:
    """Run the trial in a folder without NNI's services; return its last result and its output."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NNI_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "trial.py"), "--epochs", str(epochs)],
        cwd=folder,
        env={**environment, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def state(folder: Path) -> dict[str, object]:
    """Return the state in the trial's checkpoint."""
    found: dict[str, object] = json.loads((folder / "nni-checkpoint" / "state.json").read_text())
    return found


def test_second_attempt_goes_on_and_ends_as_one_that_was_never_lost(tmp_path: Path) -> None:
    lost, whole = tmp_path / "lost", tmp_path / "whole"
    lost.mkdir()
    whole.mkdir()

    run_trial(lost, 2)
    second = run_trial(lost, 4)
    run_trial(whole, 4)

    assert "from epoch 2 to 4" in second
    assert state(lost) == state(whole)


def test_trial_imports_nothing_but_the_standard_library_and_nni() -> None:
    imports = re.findall(
        r"^(?:import|from) (\w+)", (EXAMPLE / "trial.py").read_text(), re.MULTILINE
    )

    assert set(imports) - set(sys.stdlib_module_names) == {"nni"}
