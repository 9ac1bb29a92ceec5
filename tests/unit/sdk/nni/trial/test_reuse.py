from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nni
from nni.trial.reuse import run_trials
from tests.support.trial_agent import TrialAgent

SDK = str(Path(nni.__file__).parents[1])
TIMEOUT_S = 60
HEAD = "import json, os, sys\nimport nni\nfrom nni.trial.reuse import run_trials\n"
ONE = """
def one():
    print("trial", nni.get_trial_id(), nni.get_next_parameter()["x"], flush=True)
    nni.report_final_result(len(nni.get_trial_id()))
"""


class Process:
    """Process of several trials, whose agent has further ones for it."""

    def __init__(self, folder: Path, further: int = 2) -> None:
        self.folder = folder
        self.agent = TrialAgent(folder, {"x": 1})
        self.agent.offers_next = True
        for index in range(further):
            self.add(f"further{index}")

    def add(self, trial_id: str, cwd: str = "", unset: tuple[str, ...] = ()) -> None:
        environment = {**self.agent.environment(), "NNI_TRIAL_JOB_ID": trial_id}
        trial = {"cwd": cwd or str(self.folder), "environment": environment, "unset": list(unset)}
        self.agent.successors.append((trial, self.folder / f"{trial_id}.out"))

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script as the leader of a session, as an agent does."""
        with self.agent:
            return subprocess.run(
                [sys.executable, "-c", HEAD + script],
                cwd=self.folder,
                env={
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": SDK,
                    **self.agent.environment(),
                    **variables,
                },
                capture_output=True,
                text=True,
                start_new_session=True,
                check=False,
                timeout=TIMEOUT_S,
            )

    def output(self, trial_id: str) -> str:
        return (self.folder / f"{trial_id}.out").read_text()

    def facts(self, *trial_ids: str) -> list[Any]:
        return [json.loads(self.output(trial_id)) for trial_id in trial_ids]


def test_each_trial_has_ids_metrics_and_output_of_its_own(tmp_path: Path) -> None:
    process = Process(tmp_path)

    done = process.run(ONE + "run_trials(one)")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "trial trial1 1\n"
    assert process.output("further0") == "trial further0 1\n"
    assert process.output("further1") == "trial further1 1\n"
    assert [value for _, _, value in process.agent.metrics] == [6, 8, 8]
    assert len(process.agent.greetings) == 1


def test_agent_that_offers_no_next_trial_is_not_asked(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.agent.offers_next = False

    done = process.run(ONE + "print(run_trials(one))")

    assert done.stdout == "trial trial1 1\n1\n"
    assert len(process.agent.successors) == 2


def test_process_ends_after_its_number_of_trials(tmp_path: Path) -> None:
    process = Process(tmp_path)

    done = process.run(ONE + "run_trials(one, max_trials=2)")

    assert done.returncode == 0
    assert len(process.agent.successors) == 1


def test_process_ends_when_its_memory_has_grown(tmp_path: Path) -> None:
    process = Process(tmp_path, further=3)
    script = (
        "held = []\ndef one():\n    held.append(bytearray(os.urandom(1)) * 2**28)\n"
        "run_trials(one, max_growth=1.5)"
    )

    # The first trial holds 256 MiB, the second one 512: 1.5 times the first cannot hold it.
    done = process.run(script)

    assert done.returncode == 0
    assert len(process.agent.successors) == 2


def test_trial_that_raises_ends_the_process_with_its_own_traceback(tmp_path: Path) -> None:
    process = Process(tmp_path)
    script = (
        "def one():\n    if nni.get_trial_id() != 'trial1':\n        raise LookupError('here')\n"
    )

    done = process.run(script + "run_trials(one)")

    assert (done.returncode, done.stderr) == (1, "")
    assert process.output("further0").endswith("LookupError: here\n")
    assert len(process.agent.successors) == 1


def test_environment_and_folder_are_put_back(tmp_path: Path) -> None:
    process = Process(tmp_path, further=0)
    other = tmp_path / "other"
    other.mkdir()
    process.add("b", str(other), unset=("TRACEPARENT",))
    script = (
        "def one():\n"
        "    names = 'MADE', 'KEPT', 'TRACEPARENT'\n"
        "    facts = [os.environ.get(name) for name in names]\n"
        "    print(json.dumps([facts, os.getcwd(), os.getcwd() in sys.path]))\n"
        "    os.environ.update(MADE='1', KEPT='2', TRACEPARENT='3')\n"
        "    os.chdir('/')\n"
        "sys.path.insert(0, os.getcwd())\n"
        "run_trials(one)"
    )

    done = process.run(script, KEPT="k", TRACEPARENT="t")

    assert json.loads(done.stdout) == [[None, "k", "t"], str(tmp_path), True]
    assert process.facts("b") == [[[None, "k", None], str(other), True]]


def test_modules_of_a_copied_folder_are_those_of_the_next_copy(tmp_path: Path) -> None:
    process = Process(tmp_path, further=0)
    copies = [tmp_path / name for name in ("a", "b")]
    for copy in copies:
        (copy / "package").mkdir(parents=True)
        (copy / "package/__init__.py").touch()
        (copy / "package/late.py").write_text(f"place = {str(copy)!r}")
    process.add("b", str(copies[1]))
    script = (
        f"os.chdir({str(copies[0])!r})\nsys.path.insert(0, os.getcwd())\nimport package\n"
        "def one():\n    if nni.get_trial_id() != 'trial1':\n        import package.late\n"
        "        print(json.dumps([package.late.place, package.__file__]))\n"
        "run_trials(one)"
    )

    process.run(script)

    assert process.facts("b") == [[str(copies[1]), str(copies[1] / "package/__init__.py")]]


def test_random_numbers_are_drawn_anew(tmp_path: Path) -> None:
    process = Process(tmp_path, further=2)
    script = (
        "import random\ndef one():\n    print(json.dumps(random.random()))\n    random.seed(0)\n"
        "run_trials(one)"
    )

    process.run(script)

    first, second = process.facts("further0", "further1")
    assert first != second
    assert random.Random(0).random() not in {first, second}


@pytest.mark.parametrize(
    ("library", "draw", "seed"),
    [
        ("numpy", "numpy.random.rand()", "numpy.random.seed(0)"),
        ("torch", "torch.rand(()).item()", "torch.manual_seed(0)"),
    ],
)
def test_library_draws_its_random_numbers_anew(
    tmp_path: Path, library: str, draw: str, seed: str
) -> None:
    pytest.importorskip(library)
    process = Process(tmp_path, further=2)
    script = f"import {library}\ndef one():\n    print(json.dumps({draw}))\n    {seed}\n"

    process.run(script + "run_trials(one)")

    first, second = process.facts("further0", "further1")
    assert first != second


@pytest.mark.parametrize(
    "leaving",
    [
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import subprocess; one.child = subprocess.Popen(['sleep', '0'])",
    ],
    ids=["thread", "child"],
)
def test_process_with_something_that_runs_takes_no_other_trial(
    tmp_path: Path, leaving: str
) -> None:
    process = Process(tmp_path)

    done = process.run(f"def one():\n    {leaving}\nrun_trials(one)\none.__dict__.clear()")

    assert done.returncode == 0
    assert len(process.agent.successors) == 2


def test_process_that_is_not_the_leader_takes_no_other_trial(tmp_path: Path) -> None:
    process = Process(tmp_path)
    script = ONE + (
        "child = os.fork()\nif child == 0:\n    run_trials(one)\n    os._exit(0)\n"
        "os.waitpid(child, 0)"
    )

    done = process.run(script)

    assert done.stdout == "trial trial1 1\n"
    assert len(process.agent.successors) == 2


def test_agent_that_goes_away_ends_the_process(tmp_path: Path) -> None:
    process = Process(tmp_path, further=0)
    process.agent.hang_up_at_next = True

    done = process.run(ONE + "run_trials(one)")

    assert (done.returncode, done.stdout) == (0, "trial trial1 1\n")


def test_outside_an_experiment_the_function_is_called_once() -> None:
    calls: list[int] = []

    assert run_trials(lambda: calls.append(1)) == 1
    assert calls == [1]


@pytest.mark.parametrize(("name", "value"), [("max_trials", 0), ("max_growth", 0.5)])
def test_limit_below_one_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got {value}"):
        run_trials(lambda: None, **{name: value})  # type: ignore[arg-type]  # by name
