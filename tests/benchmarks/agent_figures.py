"""Figures of many agents on this machine, and of agents in jobs of Slurm."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from nni.experiment import SlurmConfig
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from tests.benchmarks.bench_scale import Follower, agreeing_dispatcher, create
from tests.benchmarks.figures import Figure, at_most
from tests.benchmarks.measure import private_home
from tests.benchmarks.remote_figures import experiment_of, load, services
from tests.integration.manager.harness import TOKEN, manager_process
from tests.support import wait
from tests.support.servers import nats_server
from tests.support.slurm_cluster import slurm_cluster

AGENTS: Final = 50
SLOTS: Final = 4
FEW_TRIALS: Final = 300
FEW_TRIAL_S: Final = 0.2
MANY_TRIALS: Final = 1200
MANY_TRIAL_S: Final = 4.0
"""Longer with many agents: their trials shall not need all of the machine."""
JOBS: Final = 5
JOIN_LIMIT_S: Final = 120.0
AGENT_TRIAL: Final = """\
import os, sys, time
sys.path += {path!r}
import nni
nni.get_next_parameter()
with open({file!r}, "a") as file:
    file.write(f"{{os.getppid()}}\\n")
time.sleep({trial_s})
nni.report_final_result(0.0)
"""
JOB_TRIAL: Final = """\
import time
first_line = time.time()
import os
import nni
nni.get_next_parameter()
with open({file!r}, "a") as file:
    file.write(f"task {{os.environ['SLURM_JOB_ID']}} {{first_line}}\\n")
nni.report_final_result(0.0)
"""


@dataclass(frozen=True, slots=True)
class Joined:
    """Agents of one run."""

    joined_s: float
    """Until each agent had started a trial."""
    cpu_s: float
    """Of the manager, per trial, once all agents work."""


def agents() -> list[Figure]:
    """Start 50 agents of 4 slots while trials wait; compare the manager's CPU with one agent's."""
    one = asyncio.run(_joined(1, FEW_TRIALS, FEW_TRIAL_S))
    many = asyncio.run(_joined(AGENTS, MANY_TRIALS, MANY_TRIAL_S))
    note = f"{many.cpu_s * 1e3:.1f} ms beside {one.cpu_s * 1e3:.1f} ms"
    ratio = many.cpu_s / one.cpu_s
    return [
        at_most(f"{AGENTS} agents, joined and working", many.joined_s, 30, " s", load()),
        at_most(f"manager's CPU per trial, {AGENTS} agents beside one", ratio, 1.5, " x", note),
    ]


async def _joined(count: int, trials: int, trial_s: float) -> Joined:
    """Run the trials on real agents of a real manager."""
    with private_home() as home, nats_server(home / "nats") as nats:
        folder, started = home / "site", home / "started"
        folder.mkdir()
        started.touch()
        # No client has created the experiment, so trials have the PATH of the system.
        (folder / "trial.py").write_text(
            AGENT_TRIAL.format(file=str(started), path=sys.path, trial_s=trial_s)
        )
        async with agreeing_dispatcher() as dispatcher, NatsBus(NatsSettings(nats.url)) as bus:
            variables = {
                "NNI_HOME": str(home / "nni"),
                "NNI_NATS_URL": nats.url,
                "NNI_TOKEN": TOKEN,
                "NNI_VERSION": "0",
                "NNI_DISPATCHER_GRPC": dispatcher,
                "NNI_STOP_ON_TERM": "0",
            }
            async with manager_process(variables) as manager:
                process = psutil.Process(manager.process.pid)
                address = manager.facts["grpc"]
                experiment = await create(address, folder, trials, count * SLOTS)
                following = asyncio.create_task(Follower(bus, experiment).run())
                begin_s = time.monotonic()
                with _agents(home, nats.url, count):
                    joined_s = await _until_working(started, count, begin_s)
                    before_s = sum(process.cpu_times()[:2])
                    left = trials - len(started.read_text("ascii").split())
                    await following
                after_s = sum(process.cpu_times()[:2])
    return Joined(joined_s, (after_s - before_s) / left)


@contextmanager
def _agents(home: Path, url: str, count: int) -> Iterator[None]:
    """Run agents; kill them at the end."""
    running = []
    try:
        for number in range(count):
            variables = {
                **os.environ,
                "NNI_HOME": str(home / f"agent-{number}"),
                "NNI_NATS_URL": url,
                "NNI_TOKEN": TOKEN,
                "NNI_VERSION": "0",
                "NNI_RUNNER_SLOTS": str(SLOTS),
            }
            with (home / "agents.log").open("ab") as log:
                words = [sys.executable, "-P", "-m", "svc_trial_runner"]
                running.append(subprocess.Popen(words, env=variables, stdout=log, stderr=log))
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


async def _until_working(started: Path, count: int, begin_s: float) -> float:
    """Return the time until trials of so many agents have started: each has a parent there."""

    def all_work() -> bool:
        return len(set(started.read_text("ascii").split())) >= count

    await asyncio.to_thread(wait.until, all_work, JOIN_LIMIT_S, f"trials on {count} agents")
    return time.monotonic() - begin_s


def slurm() -> list[Figure]:
    """Measure from the first line of a job's script to the agent's first trial, in five jobs."""
    what = "Slurm: first line of the script to the first trial, median"
    try:
        with slurm_cluster() as cluster, services() as shape:
            file = shape.folder / "times"
            platform = SlurmConfig(
                memory="50M",
                reuse_mode=False,
                home=str(shape.folder / "cluster"),
                slurm_conf=cluster.configuration,
                setup_lines=[f'echo "script $SLURM_JOB_ID $(date +%s.%N)" >> {file}'],
            )
            script = JOB_TRIAL.format(file=str(file))
            experiment = experiment_of(shape, script, JOBS, 1, platform)
            experiment.start(shape.free_port())
            experiment.wait_completion()
            experiment.stop()
            lines = [line.split() for line in file.read_text("ascii").splitlines()]
    except pytest.skip.Exception as reason:
        return [Figure(what, "not measured", "<= 2.5 s", met=True, note=str(reason))]
    begins: dict[str, float] = {}
    for kind, job, time_s in lines:
        if kind == "script":
            begins[job] = min(begins.get(job, float("inf")), float(time_s))
    tasks = {job: float(time_s) for kind, job, time_s in lines if kind == "task"}
    found_s = [tasks[job] - begins[job] for job in tasks]
    note = f"{len(found_s)} jobs, {min(found_s):.2f} .. {max(found_s):.2f} s, {load()}"
    return [at_most(what, statistics.median(found_s), 2.5, " s", note)]
