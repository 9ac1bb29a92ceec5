"""Keeps a log of this version: every later one must open it.

Run: `python -m tests.assets.logs.make_log`, once for each version, and commit the new folder. It
takes about a minute. A folder that exists is never written again: what is in it was written
by its version.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from nni.version import __version__
from tests.support import wait
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.old_logs import HERE, replay_summary_of, summary_of
from tests.support.ports import free_port

# Steps and options only: a bit in the last place of a logarithm, on another processor, must not
# show in what is drawn.
SPACE = {
    "x": {"_type": "quniform", "_value": [0, 1, 0.01]},
    "units": {"_type": "randint", "_value": [1, 9]},
    "kind": {
        "_type": "choice",
        "_value": [
            {"_name": "plain"},
            {"_name": "deep", "depth": {"_type": "choice", "_value": [2, 3]}},
        ],
    },
}
WIDER = {**SPACE, "x": {"_type": "quniform", "_value": [0, 2, 0.01]}}
TRIAL = """\
import signal
import sys
import time

import nni

p = nni.get_next_parameter()
if p.get("waits"):
    print("waiting", flush=True)
    signal.pause()
if p["units"] == 3:
    sys.exit("three units never work")
for step in range(6):
    time.sleep(0.3)
    nni.report_intermediate_result((1 - abs(p["x"] - 0.7)) * (step + 1) / 6)
nni.report_final_result({"default": 1 - abs(p["x"] - 0.7), "units": p["units"]})
"""


def config(folder: Path) -> Path:
    """Write code and configuration."""
    folder.mkdir()
    (folder / "trial.py").write_text(TRIAL, "utf-8")
    content = {
        "experimentName": "kept log",
        "searchSpace": SPACE,
        "trialCommand": "python3 trial.py",
        "trialConcurrency": 3,
        "maxTrialNumber": 20,
        "seed": 20261120,
        "tuner": {"name": "TPE", "classArgs": {"optimize_mode": "maximize"}},
        "assessor": {
            "name": "Medianstop",
            "classArgs": {"optimize_mode": "maximize", "start_step": 2},
        },
        "trainingService": {"platform": "local"},
    }
    path = folder / "config.yml"
    path.write_text(json.dumps(content), "utf-8")
    return path


def live_through(nnictl: Nnictl, folder: Path) -> str:
    """Run an experiment in which much happens; give its id."""
    experiment_id = nnictl.create(config(folder / "code"))
    samples = [{"parameter": {"x": 0.5, "units": 2, "kind": {"_name": "plain"}}, "value": 0.8}]
    (folder / "samples.json").write_text(json.dumps(samples))
    nnictl("experiment", "import", experiment_id, "--filename", folder / "samples.json")
    waits = {"x": 0.1, "units": 1, "kind": {"_name": "plain"}, "waits": True}
    nnictl("trial", "add", experiment_id, "--parameters", json.dumps(waits), "--no-check")
    trial_id = wait.until(lambda: running(nnictl, experiment_id), 60, "the waiting trial")
    nnictl("trial", "kill", experiment_id, "--trial_id", trial_id)
    nnictl.shape.wait_for(experiment_id, "DONE")
    nnictl("update", "trialnum", experiment_id, "--value", 24)
    nnictl.shape.wait_for(experiment_id, "DONE")
    nnictl("stop", experiment_id)
    nnictl("resume", experiment_id, "--port", free_port())
    (folder / "wider.json").write_text(json.dumps(WIDER))
    nnictl("update", "searchspace", experiment_id, "--filename", folder / "wider.json")
    nnictl("update", "concurrency", experiment_id, "--value", 2)
    nnictl("update", "trialnum", experiment_id, "--value", 34)
    nnictl.shape.wait_for(experiment_id, "DONE")
    nnictl("stop", experiment_id)
    return experiment_id


def running(nnictl: Nnictl, experiment_id: str) -> str:
    """Give the trial that the user has added, once it runs."""
    return next(
        (
            str(trial["id"])
            for trial in nnictl.trials(experiment_id)
            if trial["status"] == "RUNNING" and is_added(trial)
        ),
        "",
    )


def is_added(trial: dict[str, Any]) -> bool:
    """Tell whether the user has added a trial."""
    return bool(trial["hyperParameters"][0]["parameter_source"] == "customized")


def main() -> int:
    """Make the folder of this version."""
    target = HERE / __version__
    if target.exists():
        print(f"{target} exists; what is in it was written by its version and stays")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shape = LocalShape(folder)
        nnictl = Nnictl(shape)
        try:
            experiment_id = live_through(nnictl, folder)
            saved = nnictl.json("experiment", "save", experiment_id, "-p", folder, "-s", "--json")
        finally:
            shape.stop()
        target.mkdir()
        archive = target / "experiment.zip"
        archive.write_bytes(Path(saved["path"]).read_bytes())
    with zipfile.ZipFile(archive) as members:
        (target / "events.log").write_bytes(members.read("events.log"))
    events = target / "events.log"
    summary = {**summary_of(events), "replay": replay_summary_of(events)}
    (target / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    print(f"{target}: {summary['counts']}, {len(summary['kinds'])} kinds of events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
