"""Execution of every example's README with the real services."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.local_shape import LocalShape, local_shape
from tests.support.node_tuner import node_tuner
from tests.support.ports import free_port

__all__ = ["local_shape"]  # a fixture

EXAMPLES = Path(__file__).parents[2] / "examples"
DONE_S = 100.0
"""Longest wait for an example, in seconds; the longest takes about 30 on two idle cores."""


@pytest.fixture
def example(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the example, so that nothing is written into the repository."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    return Path(shutil.copytree(EXAMPLES / request.param, tmp_path / "example", ignore=ignored))


def run_to_end(shape: LocalShape, config: Path) -> list[dict[str, Any]]:
    """Run one configuration until it is DONE, stop it, and return its exported results."""
    experiment = shape.create(config)
    try:
        state = shape.wait_for(experiment, "DONE", "ERROR", timeout_s=DONE_S)
        assert state == "DONE", shape.nnictl("experiment", "status", experiment).stdout
        exported = config.parent / "results.json"
        shape.nnictl("experiment", "export", experiment, "--filename", exported, "--type", "json")
        trials = shape.trials(experiment)
    finally:
        shape.nnictl("stop", experiment)
    limit = yaml.safe_load(config.read_text("utf-8"))["maxTrialNumber"]
    assert len(trials) == limit
    assert {trial["status"] for trial in trials} <= {"SUCCEEDED", "EARLY_STOPPED"}
    results: list[dict[str, Any]] = yaml.safe_load(exported.read_text("utf-8"))
    return results


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("example", ["digits"], indirect=True)
def test_digits_finds_a_good_classifier(local_shape: LocalShape, example: Path) -> None:
    results = run_to_end(local_shape, example / "config.yml")

    # Half of the search space reaches 0.95 in any of its branches; 24 tries miss that never.
    assert max(result["value"] for result in results) > 0.95
    assert {result["parameter"]["model"]["_name"] for result in results} <= {"svm", "forest", "mlp"}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("example", ["quadratic"], indirect=True)
def test_quadratic_exports_what_it_computed(local_shape: LocalShape, example: Path) -> None:
    results = run_to_end(local_shape, example / "config.yml")

    assert len(results) == 10
    for result in results:
        x, y = result["parameter"]["x"], result["parameter"]["y"]
        assert result["value"] == pytest.approx((x - 1) ** 2 + (y + 2) ** 2)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("example", ["quadratic"], indirect=True)
def test_quadratic_runs_from_python(local_shape: LocalShape, example: Path) -> None:
    script = example / "run.py"
    script.write_text(script.read_text("utf-8").replace("8080", str(free_port())), "utf-8")

    done = run_script(local_shape, script)

    assert re.search(r"best value \d+\.\d+ at \{'x': ", done.stdout), done.stdout + done.stderr


@pytest.mark.timeout(240)
@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
@pytest.mark.parametrize("example", ["shell"], indirect=True)
def test_shell_trials_report_without_python(local_shape: LocalShape, example: Path) -> None:
    results = run_to_end(local_shape, example / "config.yml")

    assert len(results) == 8
    newton = [one for one in results if one["parameter"]["method"]["_name"] == "newton"]
    assert all(one["value"] < 1e-6 for one in newton)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["config.yml", "advisor.yml"])
@pytest.mark.parametrize("example", ["custom-tuner"], indirect=True)
def test_algorithms_of_ones_own_tune(local_shape: LocalShape, example: Path, name: str) -> None:
    results = run_to_end(local_shape, example / name)

    assert results
    assert all(0.01 <= result["parameter"]["rate"] <= 1.2 for result in results)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("example", ["platforms"], indirect=True)
def test_trial_of_all_platforms_runs_on_this_machine(
    local_shape: LocalShape, example: Path
) -> None:
    results = run_to_end(local_shape, example / "local.yml")

    # The first proposal depends on the seed alone, and reaches 0.966.
    assert max(result["value"] for result in results) > 0.9


@pytest.mark.timeout(240)
@pytest.mark.parametrize("example", ["grpc-client"], indirect=True)
def test_contracts_alone_drive_an_experiment(local_shape: LocalShape, example: Path) -> None:
    local_shape.nnictl("up")

    done = run_script(local_shape, example / "client.py")

    assert len(re.findall(r"^trial \w{5}: ", done.stdout, re.MULTILINE)) == 20
    best = re.search(r"^best: (\S+) by trial \w{5}$", done.stdout, re.MULTILINE)
    assert best is not None, done.stdout
    values = re.findall(r"^trial \w{5}: (\S+) at", done.stdout, re.MULTILINE)
    assert best[1] == min(values, key=float)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("example", ["external-tuner"], indirect=True)
def test_tuner_in_another_language_tunes(
    local_shape: LocalShape, example: Path, tmp_path: Path
) -> None:
    config = example / "config.yml"
    with node_tuner(tmp_path / "node") as address:
        config.write_text(config.read_text("utf-8").replace("127.0.0.1:50080", address), "utf-8")

        results = run_to_end(local_shape, config)

    # In 20,000 simulated runs of thirty trials the worst best value was 9.5.
    assert min(result["value"] for result in results) < 15
    assert {result["parameter"]["sign"] for result in results} <= {-1, 1}


@pytest.mark.parametrize(
    "name",
    [
        "digits",
        "quadratic",
        "custom-tuner",
        "external-tuner",
        "grpc-client",
        "regression",
        "multi-objective",
        "asha-mlp",
        "pbt",
        "platforms",
        pytest.param(
            "system-tuning",
            marks=pytest.mark.skipif(shutil.which("xz") is None, reason="xz is not installed"),
        ),
    ],
)
def test_trial_runs_by_itself_without_nni_around_it(name: str, tmp_path: Path) -> None:
    environment = {key: text for key, text in os.environ.items() if not key.startswith("NNI_")} | {
        "HOME": str(tmp_path)
    }

    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name / "trial.py")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Final result" in done.stdout


GROUPS = ("compression", "integrations", "nas")
"""Folders of examples that are no experiments, but scripts and jobs."""
SCRIPTS = {"feature-selection", "notebooks", "parallel-tpe", "shared-study"}
"""Folders without a configuration."""
NAMES = sorted(
    path.relative_to(EXAMPLES).as_posix()
    for folder in (EXAMPLES, *(EXAMPLES / group for group in GROUPS))
    for path in folder.iterdir()
    if path.is_dir() and path.name not in GROUPS
)


@pytest.mark.parametrize("name", NAMES)
def test_every_example_explains_itself(name: str) -> None:
    assert (EXAMPLES / name / "README.md").read_text("utf-8").startswith("# ")
    configs = {"config.yml", "local.yml"} & {file.name for file in (EXAMPLES / name).iterdir()}
    assert configs or name.startswith(GROUPS) or name in SCRIPTS


def test_index_lists_every_example_once() -> None:
    index = (EXAMPLES / "README.md").read_text("utf-8")

    assert sorted(re.findall(r"^\| \[`([\w/-]+)`\]\(\1\)", index, re.MULTILINE)) == NAMES


def test_snippet_of_the_quadratic_readme_runs_without_services(tmp_path: Path) -> None:
    text = (EXAMPLES / "quadratic" / "README.md").read_text("utf-8")
    snippet = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippet is not None

    done = subprocess.run(
        [sys.executable, "-c", snippet[1]], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert float(done.stdout.split()[0]) < 5.0  # of 0 to 85; forty random points do better


def run_script(shape: LocalShape, script: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of an example as a user of this installation would."""
    done = subprocess.run(
        [sys.executable, "-P", str(script)],
        env=shape.environment,
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
