"""An algorithm from a package of its own, used by its name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape, running_shape

DEMO = Path(__file__).parents[2] / "examples" / "demo-tuner"


@pytest.fixture
def shape(tmp_path: Path) -> Iterator[LocalShape]:
    """Services of an environment in which the package is installed."""
    installed = tmp_path / "installed"
    package = shutil.copytree(DEMO, tmp_path / "package")
    options = ["-q", "--no-deps", "--no-build-isolation", "--target", str(installed)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(package)], check=True)
    with running_shape(tmp_path, PYTHONPATH=str(installed)) as started:
        yield started


@pytest.mark.claim("hpo", 46)
@pytest.mark.claim("platform", 56)
@pytest.mark.timeout(240)
def test_demo_package_is_registered_listed_run_and_unregistered(shape: LocalShape) -> None:
    shape.nnictl("algo", "register", "--meta", DEMO / "meta_file.yml")

    listed = json.loads(shape.nnictl("algo", "list", "--json").stdout)
    row = next(one for one in listed if one["Name"] == "demotuner")
    assert list(row.values()) == ["demotuner", "tuners", "User", "DemoTuner", "demo_tuner"]
    refused = shape.nnictl("algo", "unregister", "TPE", check=False)
    assert refused.returncode == 1
    assert "comes with NNI" in refused.stderr

    config = shutil.copytree(DEMO, shape.folder / "example") / "config.yml"
    wrong = config.with_name("wrong.yml")
    wrong.write_text(config.read_text().replace("optimize_mode: minimize", "optimize_mode: small"))
    port = ("--port", str(shape.free_port()))
    stopped = shape.nnictl("create", "--config", wrong, *port, check=False)
    assert stopped.returncode == 2
    assert "optimize_mode" in stopped.stderr
    assert json.loads(shape.nnictl("experiment", "list", "--all", "--json").stdout) == []

    experiment = shape.create(config)
    assert shape.wait_for(experiment, "DONE", "ERROR", timeout_s=60) == "DONE"
    trials = shape.trials(experiment)
    shape.nnictl("stop", experiment)
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 12

    shape.nnictl("algo", "unregister", "demotuner")
    assert "demotuner" not in shape.nnictl("algo", "list").stdout
