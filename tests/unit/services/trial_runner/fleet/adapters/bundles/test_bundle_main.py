"""Entry point of an unpacked bundle."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles import bundle_main

PROGRAM = """
import sys
own = sys.modules["__main__"].__file__ == sys.argv[0] == __file__
print(sys.argv[1:], __name__, own, sys.path[-1])
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    shutil.copy(bundle_main.__file__, tmp_path / "run.py")
    package = tmp_path / "site" / "svc_trial_runner"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PROGRAM)
    (package / "fleet/adapters/bundles").mkdir(parents=True)
    (package / "fleet/adapters/bundles/worker.py").write_text(PROGRAM)
    (tmp_path / "site" / "json.py").write_text("raise AssertionError")
    return tmp_path


def run(bundle: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(bundle / "run.py"), *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_agent_is_run_with_its_settings(bundle: Path) -> None:
    output = run(bundle, "agent", "settings.json")

    assert output == f"['--settings', 'settings.json'] __main__ True {bundle / 'site'}\n"


def test_other_arguments_are_those_of_the_worker(bundle: Path) -> None:
    output = run(bundle, "worker", "--folder", "home")

    assert output == f"['--folder', 'home'] __main__ True {bundle / 'site'}\n"


def test_standard_library_comes_before_the_packages(bundle: Path) -> None:
    (bundle / "site" / "svc_trial_runner" / "__main__.py").write_text("import json; print(json)")

    assert "site/json.py" not in run(bundle, "agent", "settings.json")
