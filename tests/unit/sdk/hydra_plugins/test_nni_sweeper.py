"""Applications of Hydra run in processes of their own: Hydra's registries are global."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

APPLICATION = """
import hydra
from omegaconf import OmegaConf

@hydra.main(version_base="1.3", config_path=None)
def task(config):
    if config.x > 0.9:
        raise ValueError("x is too large")
    return RESULT

task()
"""
COMMAND = ("--multirun", "hydra/sweeper=nni", "hydra.sweep.dir=out", "hydra.sweeper.seed=0")


def sweep(
    folder: Path, *overrides: str, result: str = "config.x ** 2"
) -> subprocess.CompletedProcess[str]:
    script = folder / "application.py"
    script.write_text(APPLICATION.replace("RESULT", result), "utf-8")
    return subprocess.run(
        [sys.executable, str(script), *COMMAND, *overrides],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def results(folder: Path) -> Any:
    return yaml.safe_load((folder / "out/optimization_results.yaml").read_text("utf-8"))


def test_jobs_in_batches_are_trials_and_the_best_is_written(tmp_path: Path) -> None:
    done = sweep(
        tmp_path, "+x=interval(-0.8,0.8)", "hydra.sweeper.n_trials=5", "hydra.sweeper.n_jobs=2"
    )

    assert done.returncode == 0, done.stderr
    found = results(tmp_path)
    assert found["best_value"] == float(found["best_params"]["+x"]) ** 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == [
        *map(str, range(5))
    ]
    assert (tmp_path / "out/multirun.yaml").is_file()


def test_several_objectives_have_solutions_and_an_exhausted_tuner_ends(tmp_path: Path) -> None:
    done = sweep(
        tmp_path,
        "+x=choice(-0.5,0,0.5)",
        "hydra.sweeper.tuner=GridSearch",
        "hydra.sweeper.optimize_mode={a:minimize,b:maximize}",
        result="{'a': config.x, 'b': config.x}",
    )

    assert done.returncode == 0, done.stderr
    assert sorted(one["values"]["a"] for one in results(tmp_path)["solutions"]) == [-0.5, 0, 0.5]


def test_as_many_jobs_may_fail_as_the_settings_allow(tmp_path: Path) -> None:
    done = sweep(
        tmp_path,
        "+x=choice(0.5,1.0)",
        "hydra.sweeper.tuner=GridSearch",
        "hydra.sweeper.n_jobs=2",
        "hydra.sweeper.max_failure_rate=0.5",
    )

    assert done.returncode == 0, done.stderr
    assert results(tmp_path)["best_value"] == 0.25


def test_the_first_failed_job_ends_the_sweep_otherwise(tmp_path: Path) -> None:
    done = sweep(tmp_path, "+x=choice(1.0,2.0)", "hydra.sweeper.tuner=GridSearch")

    assert done.returncode != 0
    assert "x is too large" in done.stderr
    assert not (tmp_path / "out/1").exists()
