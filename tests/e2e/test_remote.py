"""Experiments on machines that are reached over SSH and have nothing but Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil
import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.nnictl import Nnictl
from tests.support.platform_experiments import (
    assert_each_counted_once,
    first_log,
    write_experiment,
)
from tests.support.ports import free_port
from tests.support.ssh_server import ServerOptions, SshServer, make_key
from tests.support.wait import until

pytest.importorskip("asyncssh")

__all__ = ["local_shape"]  # a fixture

USER = "ann"
PASSWORD = "a pass word of the machine"
TIMEOUT_S = 240.0
TRIAL = """\
import os
import pathlib
import time
import nni
import helper

parameters = nni.get_next_parameter()
while pathlib.Path("~/hold").expanduser().exists():
    time.sleep(0.02)
nni.report_intermediate_result(parameters["x"] / 2)
print("home", os.path.expanduser("~"), helper.WORD, flush=True)
nni.report_final_result(parameters["x"])
"""
SERVICE = """\
  platform: remote
  machineList:
"""


class Machine:
    """Machine of this test: an SSH server with a home of its own.

    Args:
        folder: of keys and home.
    """

    def __init__(self, folder: Path) -> None:
        self.home = folder / "machine"
        self.home.mkdir(parents=True)
        key = make_key(folder / "host_key")
        self.server = SshServer(
            ServerOptions(home=str(self.home), host_key=key, passwords={USER: PASSWORD})
        )
        self.server.start()

    def entry(self) -> str:
        """Return the lines of this machine in `machineList`."""
        return (
            f"  - host: 127.0.0.1\n    port: {self.server.port}\n    user: {USER}\n"
            f"    password: {PASSWORD}\n    hostKeyPolicy: accept-new\n"
        )

    def processes(self) -> list[psutil.Process]:
        """Return the processes that were started for this machine."""
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(str(self.home) in word for word in process.info["cmdline"] or ())
        ]

    def close(self) -> None:
        """Stop the server and whatever runs."""
        self.server.kill()
        for process in self.processes():
            process.kill()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    opened = Machine(tmp_path / "remote")
    yield opened
    opened.close()


@pytest.fixture
def config(tmp_path: Path, machine: Machine) -> Path:
    path = write_experiment(tmp_path / "code", TRIAL, SERVICE + machine.entry())
    (path.parent / "helper.py").write_text("WORD = 'helped'\n")
    return path


@pytest.mark.claim("platform", 77)
@pytest.mark.timeout(420)
def test_experiment_runs_on_a_machine_with_nothing_but_python(
    local_shape: LocalShape, machine: Machine, config: Path
) -> None:
    nnictl = Nnictl(local_shape)
    port = free_port()

    experiment = nnictl.create(config, port=port)
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    assert len({trial["runnerId"] for trial in records(local_shape, port)}) == 1
    assert len({trial["logPath"] for trial in nnictl.trials(experiment)}) == 4
    assert f"home {machine.home} helped" in first_log(nnictl, experiment)
    nnictl("stop", experiment)
    until(lambda: not machine.processes(), TIMEOUT_S, "the end of the agents")
    agents = machine.home / ".nni" / "agents"
    until(lambda: not agents.exists() or not list(agents.iterdir()), TIMEOUT_S, "clean machines")
    holders = [
        path
        for path in local_shape.folder.rglob("*")
        if path.is_file() and PASSWORD.encode() in path.read_bytes()
    ]
    assert [path.parent.name for path in holders] == ["pool-secrets"]


@pytest.mark.timeout(420)
def test_each_trial_counts_once_though_processes_and_the_connection_end(
    local_shape: LocalShape, machine: Machine, config: Path
) -> None:
    nnictl = Nnictl(local_shape)
    hold = machine.home / "hold"
    hold.touch()
    experiment = nnictl.create(config)
    until(lambda: running(nnictl, experiment) == 2, TIMEOUT_S, "two trials")

    machine.server.kill()
    local_shape.kill("trial-runner.fleet")
    local_shape.kill("manager")
    machine.server.start()
    hold.unlink()
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    nnictl("stop", experiment)
    until(lambda: not machine.processes(), TIMEOUT_S, "the end of the agents")


@pytest.mark.timeout(420)
def test_machine_that_comes_later_gets_the_trials(
    local_shape: LocalShape, machine: Machine, config: Path
) -> None:
    nnictl = Nnictl(local_shape)
    machine.server.kill()
    experiment = nnictl.create(config, "--no-check")
    away = "no SSH server listens"
    until(lambda: away in reason(nnictl, experiment), TIMEOUT_S, "a reason")

    machine.server.start()
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)


def running(nnictl: Nnictl, experiment: str) -> int:
    return sum(trial["status"] == "RUNNING" for trial in nnictl.trials(experiment))


@pytest.mark.timeout(240)
def test_wrong_password_is_a_visible_reason(
    local_shape: LocalShape, machine: Machine, config: Path
) -> None:
    nnictl = Nnictl(local_shape)
    config.write_text(config.read_text().replace(PASSWORD, "another one"))

    refused = "machineList[0].password was refused"
    asked_first = nnictl("create", "--config", config, expect=2)
    assert refused in asked_first.stderr
    experiment = nnictl.create(config, "--no-check")
    until(lambda: refused in reason(nnictl, experiment), TIMEOUT_S, "a reason")

    waiting = reason(nnictl, experiment)
    assert f"ssh -p {machine.server.port} {USER}@127.0.0.1" in waiting
    assert "another one" not in waiting


def reason(nnictl: Nnictl, experiment: str) -> str:
    return str(nnictl.json("experiment", "status", experiment)["waitingFor"])


def section(nnictl: Nnictl, experiment: str) -> dict[str, Any]:
    """Return the section of the experiment's only platform."""
    shown = nnictl.json("config", "show", experiment, "--json")
    return dict(shown["config"]["trainingService"])


@pytest.mark.timeout(420)
def test_raised_limit_of_agents_starts_another_agent_while_the_experiment_runs(
    local_shape: LocalShape, machine: Machine, config: Path, tmp_path: Path
) -> None:
    nnictl = Nnictl(local_shape)
    other = Machine(tmp_path / "another")
    holds = [one.home / "hold" for one in (machine, other)]
    for hold in holds:
        hold.touch()
    config.write_text(config.read_text() + other.entry() + "  slots: 1\n  maxAgents: 1\n")
    try:
        experiment = nnictl.create(config)
        remedy = f"nnictl update agents {experiment} --max-agents"
        until(lambda: remedy in reason(nnictl, experiment), TIMEOUT_S, "the limit as the reason")

        nnictl("update", "agents", experiment, "--max-agents", "2")

        until(lambda: running(nnictl, experiment) == 2, TIMEOUT_S, "a trial on each machine")
        assert section(nnictl, experiment)["maxAgents"] == 2
        nnictl("update", "agents", experiment, "--remove", "max-agents")
        assert "maxAgents" not in section(nnictl, experiment)
        for hold in holds:
            hold.unlink()
        local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)
        assert_each_counted_once(nnictl, experiment)
        nnictl("stop", experiment)
        until(lambda: not other.processes(), TIMEOUT_S, "the end of the agents")
    finally:
        other.close()


@pytest.mark.claim("platform", 81)
@pytest.mark.timeout(420)
def test_platforms_of_a_list_share_the_trials_which_name_theirs(
    local_shape: LocalShape, machine: Machine, config: Path
) -> None:
    nnictl = Nnictl(local_shape)
    holds = [home / "hold" for home in (machine.home, local_shape.folder)]
    for hold in holds:
        hold.touch()
    config.write_text(hybrid(config.read_text()))

    port = free_port()
    experiment = nnictl.create(config, port=port)
    until(lambda: running(nnictl, experiment) == 2, TIMEOUT_S, "a trial on each platform")
    for hold in holds:
        hold.unlink()
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    assert {trial["platform"] for trial in records(local_shape, port)} == {"local", "remote"}


@pytest.mark.timeout(420)
def test_platform_of_a_list_that_is_down_does_not_stop_the_trials(
    local_shape: LocalShape, machine: Machine, config: Path
) -> None:
    nnictl = Nnictl(local_shape)
    machine.server.kill()
    config.write_text(hybrid(config.read_text()))

    experiment = nnictl.create(config)
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)


def records(shape: LocalShape, port: int) -> list[dict[str, Any]]:
    """Return the trials of the experiment with a page on a port, as the REST API has them."""
    request = Request(
        f"http://127.0.0.1:{port}/api/v1/nni/trial-jobs",
        headers={"Authorization": f"Bearer {shape.endpoint()['token']}"},
    )
    with urlopen(request, timeout=60) as response:
        found: list[dict[str, Any]] = json.loads(response.read())
    return found


def hybrid(config: str) -> str:
    """Return a configuration with a list of platforms of one slot each, this machine the last."""
    head, _, service = config.partition("trainingService:\n")
    lines = service.splitlines()
    entry = [f"  {lines[0].replace('platform', '- platform', 1).strip()}"]
    entry += [f"  {line}" for line in ("  slots: 1", *lines[1:])]
    return "\n".join([f"{head}trainingService:", *entry, "  - platform: local", ""])
