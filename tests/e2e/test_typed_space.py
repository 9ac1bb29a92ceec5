"""A type as search space through the real services, and as the README shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.local_shape import LocalShape
from tests.support.ports import free_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "typed-space"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example, so that nothing is written into the repository."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=ignored))


def python(*words: str | Path, cwd: Path) -> str:
    """Run Python as a user would and give its output."""
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.timeout(240)
def test_type_is_tuned_from_python(local_shape: LocalShape, example: Path) -> None:
    script = example / "run.py"
    text = script.read_text().replace("8080", str(free_port()))
    script.write_text(text.replace("max_trial_number = 20", "max_trial_number = 8"))

    done = local_shape.run([sys.executable, script])

    found = re.search(r"best value (\S+) with Training\(method=(Newton|Descent)\(", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) < 9**2  # the start is worth 90, and every step leads down


def test_space_in_the_configuration_is_that_of_the_type(example: Path) -> None:
    shown = python(
        "-c",
        "import json; from space import Training; from nni.hpo import search_space; "
        "print(json.dumps(search_space(Training)))",
        cwd=example,
    )

    config = yaml.safe_load((example / "config.yml").read_text())
    assert yaml.safe_load(shown) == config["searchSpace"]


def test_trial_runs_by_itself_with_options(example: Path) -> None:
    shown = python("trial.py", "--method", "Newton", "--steps", "20", cwd=example)

    assert "Training(method=Newton(damping=0.5), steps=20, start=4.0)" in shown
    assert "Final result" in shown


def test_snippet_of_the_readme_tunes_a_signature(example: Path) -> None:
    snippet = re.search(r"```python\n(.*?)```", (example / "README.md").read_text(), re.DOTALL)
    assert snippet is not None

    shown = python("-c", snippet[1], cwd=example)

    assert float(shown.split()[0]) < 1.0  # of 0 to 6; one random point in sixteen does as well
