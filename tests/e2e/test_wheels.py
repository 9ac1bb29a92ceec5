"""The README's tour and the demo, from wheels in an empty environment away from the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nni.version import __version__
from tests.support import wait
from tests.support.markdown import CodeBlock, code_blocks, words_of
from tests.support.ports import free_port
from tests.support.pythons import oldest_and_newest
from tests.support.wheels import ROOT, shared_wheels

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

PYTHONS = oldest_and_newest()
"""What both agree in holds between them; an experiment runs on all versions in `.ci/pythons`."""
OLDEST = next(iter(PYTHONS))


@dataclass(frozen=True)
class WheelInstallation:
    """Virtual environment into which the wheels were installed, and a folder to work in."""

    environment_folder: Path
    folder: Path

    def run(self, *command: str, timeout_s: float = 120.0) -> str:
        """Run a command of the installation in its folder and return what it prints."""
        program = self.environment_folder / "bin" / command[0]
        done = subprocess.run(
            [str(program) if program.exists() else command[0], *command[1:]],
            cwd=self.folder,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def variables(self) -> dict[str, str]:
        """Return an environment without anything of the repository or its `.venv`."""
        return {
            "HOME": str(self.folder),
            "NNI_HOME": str(self.folder / "nni"),
            "PATH": f"{self.environment_folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "LANG": os.environ.get("LANG", "C.UTF-8"),
        }

    def status(self) -> str:
        """Return the state of the latest experiment."""
        return str(json.loads(self.run("nnictl", "experiment", "status"))["status"])


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheels of this repository."""
    return shared_wheels(tmp_path_factory.getbasetemp()).folder


def install(python: Path, wheelhouse: Path, home: Path, *packages: str) -> WheelInstallation:
    """Make a virtual environment with packages, those of this repository from their wheels."""
    made = WheelInstallation(home / "venv", home / "work")
    # Debian's Python has no ensurepip: the pip of this environment installs into the other one.
    subprocess.run([python, "-m", "venv", "--without-pip", made.environment_folder], check=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python"),
            *(str(made.environment_folder / "bin" / "python"), "install", "--quiet"),
            *("--no-compile", "--find-links", str(wheelhouse)),
            *("--constraint", str(ROOT / "constraints.txt")),
            *packages,
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    made.folder.mkdir()
    return made


@pytest.fixture(scope="module", params=PYTHONS)
def installation(
    request: pytest.FixtureRequest, wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WheelInstallation]:
    """Install the wheels for one Python; remove the environment when its tests are over."""
    home = tmp_path_factory.mktemp(f"python-{request.param}")
    packages = (f"nni[local,hpo]=={__version__}", "scikit-learn")
    made = install(PYTHONS[request.param], wheelhouse, home, *packages)
    shutil.copytree(ROOT / "examples", made.folder / "examples")
    yield made
    made.run("nnictl", "down")
    shutil.rmtree(home)


def tour(language: str) -> list[CodeBlock]:
    """Return the blocks of the README's section *Five minutes*."""
    readme = ROOT / "README.md"
    lines = readme.read_text("utf-8").splitlines()
    first = lines.index("## Five minutes") + 1
    last = lines.index("## Search an architecture") + 1
    return [
        block
        for block in code_blocks(readme)
        if block.language == language and first < block.line < last
    ]


def test_installation_is_complete_and_not_the_checkout(installation: WheelInstallation) -> None:
    imported = installation.run(
        *("python", "-P", "-c"),
        "import nni, nni_proto.bytes.v1.byte_service_pb2, nni_wire.limits, svc_manager.__main__, "
        "svc_compressor.__main__, svc_dispatcher.__main__, svc_trial_runner.__main__, "
        "svc_standalone.__main__\n"
        "print(nni.__file__, nni.__version__)",
    )

    assert imported.split() == [
        str(next(installation.environment_folder.glob("lib/python3*/site-packages/nni/__init__.py"))),
        __version__,
    ]  # fmt: skip


def test_without_extras_there_are_trials_and_nnictl_and_errors_name_the_extra(
    wheelhouse: Path, tmp_path: Path
) -> None:
    alone = install(PYTHONS[OLDEST], wheelhouse, tmp_path, f"nni=={__version__}")

    printed = alone.run(
        *("python", "-P", "-c"),
        "import importlib.util, nni, nni.hpo\n"
        "print(nni.get_next_parameter())\n"
        "nni.report_final_result(0.5)\n"
        "print(importlib.util.find_spec('numpy'))\n"
        "try:\n"
        "    nni.hpo.TPETuner\n"
        "except ImportError as error:\n"
        "    print(error)\n",
    )

    lines = printed.splitlines()
    assert lines[0] == "{}"
    assert lines[-2:] == ["None", "nni.hpo.TPETuner needs numpy; run: pip install 'nni[hpo]'"]
    assert __version__ in alone.run("nnictl", "--version")


def test_commands_of_the_tour_work(installation: WheelInstallation) -> None:
    commands, _refusals = tour("console")
    experiment = ""

    for command in commands.commands():
        words = words_of(command)
        match words[1]:
            case "create":
                printed = installation.run(*words, "--port", str(free_port()))
                found = re.search(r"The experiment id is (\w{8})", printed)
                assert found, printed
                experiment = found[1]
            case "resume":
                installation.run(*words[:2], experiment, "--port", str(free_port()))
            case _:
                wait.until(
                    lambda: installation.status() in {"DONE", "STOPPED"}, 60, "the experiment ends"
                )
                installation.run(*words)

    assert len((installation.folder / "results.csv").read_text().splitlines()) == 31
    assert experiment in installation.run("nnictl", "experiment", "list", "--all")


def test_scripts_of_the_tour_print_what_it_shows(installation: WheelInstallation) -> None:
    experiment, optimize = tour("python")
    shown = re.search(r"^# (\{.*)$", optimize.text, re.MULTILINE)
    assert shown

    installation.run("python", "-P", "-c", experiment.text.replace("8080", str(free_port())))

    assert installation.run("python", "-P", "-c", optimize.text).strip() == shown[1]


@pytest.mark.parametrize("installation", [OLDEST], indirect=True)
def test_demo_tunes_a_real_model(installation: WheelInstallation) -> None:
    script = re.search(
        r"<<'SCRIPT'\n(.*?)^SCRIPT$", (ROOT / "dev").read_text(), re.DOTALL | re.MULTILINE
    )
    assert script

    printed = installation.run(
        "python", "-P", "-c", script[1], "examples/digits/config.yml", timeout_s=300
    )

    best = re.search(r"accuracy  parameters\n +(0\.\d+)", printed)
    assert best, printed
    # A support vector machine with scikit-learn's defaults reaches 0.96 on these folds.
    assert float(best[1]) > 0.96
