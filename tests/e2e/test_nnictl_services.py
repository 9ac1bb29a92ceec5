"""`nnictl` and the services of a machine: up once, down in order, back after a crash."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import urllib.request
from pathlib import Path

import pytest

from tests.support.experiments import PATIENT, write_experiment
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.ports import free_port
from tests.support.processes import alive, tree
from tests.support.wait import until


@pytest.fixture
def nnictl(local_shape: LocalShape) -> Nnictl:
    return Nnictl(local_shape)


@pytest.mark.claim("platform", 28)
def test_two_first_commands_at_once_share_one_set_of_services(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(tmp_path, PATIENT)

    both = [nnictl.start("create", "-c", config, "-p", free_port()) for _ in range(2)]

    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert len(nnictl.json("experiment", "list", "--json")) == 2


def test_down_ends_experiments_and_every_process(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT))
    until(lambda: nnictl.trials(experiment_id), 60, "a trial")
    endpoint = nnictl.shape.home / "endpoint.json"
    assert stat.S_IMODE(endpoint.stat().st_mode) == 0o600
    pids = [process.pid for process in tree(nnictl.shape.endpoint()["pid"])]

    nnictl("down")

    # A process that outlives its parent is reaped by the first one, which may never do it.
    until(lambda: not list(alive(pids)), 60, "the end of all processes")
    assert not endpoint.exists()
    assert "not up" in nnictl("down").stdout
    assert nnictl.json("experiment", "list", "--all", "--json")[0]["status"] == "STOPPED"


def test_up_on_a_taken_port_is_refused_and_starts_nothing(nnictl: Nnictl) -> None:
    port = free_port()  # one that no outgoing connection gets before the second start
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()

        refused = nnictl("up", "--port", port, expect=2)

    assert f"port {port} is in use" in refused.stderr
    assert not (nnictl.shape.home / "endpoint.json").exists()
    assert nnictl.json("up", "--port", port, "--json")["http"].endswith(f":{port}")


def test_experiment_goes_on_after_everything_was_killed(nnictl: Nnictl, tmp_path: Path) -> None:
    port = free_port()
    config = write_experiment(tmp_path, PATIENT, trialConcurrency=1, maxTrialNumber=2)
    experiment_id = nnictl.create(config, port=port)
    until(lambda: nnictl.trials(experiment_id), 60, "a trial")
    pids = [process.pid for process in tree(nnictl.shape.endpoint()["pid"])]

    os.kill(nnictl.shape.endpoint()["pid"], signal.SIGKILL)
    until(lambda: not list(alive(pids)), 60, "the end of all processes")

    assert nnictl.status(experiment_id)["status"] in {"RUNNING", "INITIALIZED"}
    assert f":{port}" in nnictl("webui", "url").stdout

    def runs_again() -> bool:
        trials = nnictl.trials(experiment_id)
        return len(trials) == 1 and trials[0]["status"] == "RUNNING"

    until(runs_again, 60, "the trial to run again")


def test_port_of_an_experiment_is_never_free_while_the_manager_restarts(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    port = free_port()
    config = write_experiment(tmp_path, PATIENT, trialConcurrency=1, maxTrialNumber=1)
    experiment_id = nnictl.create(config, port=port)
    before = nnictl.shape.pids()["manager"]

    nnictl.shape.kill("manager")
    taken: list[bool] = []

    def restarted() -> bool:
        taken.append(can_bind(port))
        return nnictl.shape.pids().get("manager", before) != before

    until(restarted, 60, "the manager")
    # Connections wait in the supervisor's socket until the next manager accepts them.
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/nni/version", timeout=20) as page:
        shown = json.loads(page.read())

    assert not any(taken)
    assert shown["experimentId"] == experiment_id
    nnictl("stop", experiment_id)
    assert can_bind(port)


def can_bind(port: int) -> bool:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", port))
            other.listen()
        except OSError:
            return False
        return True


def test_storage_is_shown_and_cleaned(nnictl: Nnictl) -> None:
    nnictl("up")
    blobs = nnictl.shape.home / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / ("0" * 64)).write_bytes(b"orphaned")

    shown = nnictl.json("storage", "show", "--json")
    young = nnictl("storage", "clean").stdout
    dry = nnictl("storage", "clean", "--dry-run", "--grace", 0).stdout
    done = nnictl.json("storage", "clean", "--grace", 0, "--json")

    assert (shown["usedBytes"], shown["experiments"]) == (8, [])
    assert young.startswith("INFO: 0 blobs deleted (0 bytes), 1 kept")
    assert f"sha256/{'0' * 64}" in dry
    assert done["keys"] == [f"sha256/{'0' * 64}"]
    assert "0 bytes in 0 blobs, of 1.1 TB" in nnictl("storage", "show").stdout
