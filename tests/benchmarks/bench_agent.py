"""What does a no-op Python trial cost the agent, and how many run per second?

Drives a real agent through a real nats-server with 8 slots. Prints trials per second, CPU per
trial of the agent, its warm interpreters, the trials themselves and the bus, and the time from a
trial's end to the arrival of its report.

    python -m tests.benchmarks.bench_agent [trials]
"""

import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.benchmarks.guard import run_guarded
from tests.integration.trial_runner.harness import TOKEN, AgentProcess, manager_side
from tests.support.servers import nats_server

SLOTS = 8
WARM_UP = 40
TRIALS = 600
SCRIPTS = {
    "pass": "pass\n",
    "report": (
        "import nni\nnni.get_next_parameter()\nnni.report_intermediate_result(0.5)\n"
        "nni.report_final_result(1.0)\n"
    ),
}
SDK = Path(__file__).resolve().parents[2] / "sdk"


def cpu_s(pid: int, *, children: bool) -> float:
    """CPU time of a process; with `children`, of those it has reaped as well."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    own = times.user + times.system
    return own + times.children_user + times.children_system if children else own


async def measure(name: str, script: str, trials: int, folder: Path) -> None:
    folder.mkdir()
    with nats_server(folder / "nats", TOKEN) as nats:
        agent = AgentProcess(folder / "home", nats.url)
        await agent.start()
        code = folder / "code"
        code.mkdir()
        (code / "trial.py").write_text(script)
        async with manager_side(nats.url, folder) as manager:
            spec = manager.spec(
                "python3 trial.py", code_directory=code, environment={"PYTHONPATH": str(SDK)}
            )
            latencies: list[float] = []
            slots = asyncio.Semaphore(SLOTS)
            ended = 0

            def on_report(report: object) -> None:
                nonlocal ended
                if report.WhichOneof("kind") == "exited":  # type: ignore[attr-defined]
                    at = report.exited.ended_at  # type: ignore[attr-defined]
                    latencies.append(time.time() - at.seconds - at.nanos / 1e9)
                    ended += 1
                    slots.release()

            manager.on_report = on_report

            async def run(first: int, count: int) -> float:
                nonlocal ended
                ended = 0
                begin = time.perf_counter()
                for number in range(first, first + count):
                    await slots.acquire()
                    await manager.publish(f"t{number:05d}", spec, {"x": 1}, sequence_id=number)
                async with asyncio.timeout(120):
                    while ended < count:
                        async with manager.changed:
                            await manager.changed.wait()
                return time.perf_counter() - begin

            await run(0, WARM_UP)
            latencies.clear()
            helpers = [child.pid for child in psutil.Process(agent.pid).children(recursive=True)]
            bus_pid = nats._process.pid  # type: ignore[union-attr]
            before = (
                cpu_s(agent.pid, children=False),
                sum(cpu_s(pid, children=False) for pid in helpers),
                sum(cpu_s(pid, children=True) for pid in helpers),
                cpu_s(bus_pid, children=False),
            )
            wall = await run(WARM_UP, trials)
            after = (
                cpu_s(agent.pid, children=False),
                sum(cpu_s(pid, children=False) for pid in helpers),
                sum(cpu_s(pid, children=True) for pid in helpers),
                cpu_s(bus_pid, children=False),
            )
            own, helper, family, bus = (b - a for a, b in zip(before, after, strict=True))
            warm = sum(
                report.started.warm
                for reports in manager.reports.values()
                for report in reports
                if report.WhichOneof("kind") == "started"
            )
            assert warm, "no trial ran in a warm interpreter"
            ms = 1000 / trials
            print(
                f"{name:8} {trials / wall:7.1f} trials/s | CPU ms/trial: agent {own * ms:.2f}, "
                f"warm {helper * ms:.2f}, trial {(family - helper) * ms:.2f}, bus {bus * ms:.2f} | "
                f"end -> arrived ms: median {statistics.median(latencies) * 1e3:.2f}, "
                f"p95 {statistics.quantiles(latencies, n=20)[-1] * 1e3:.2f} | warm {warm}"
            )
        await agent.end()


def main() -> None:
    run_guarded()
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}, slots {SLOTS}, n {trials}"
    )
    # One folder for all, below the home directory where experiments are by default: ext4 passes
    # over files deleted within the last seconds one by one, which makes new ones cost up to 0.5 ms.
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".bench-agent-") as folder:
        for name, script in SCRIPTS.items():
            asyncio.run(measure(name, script, trials, Path(folder) / name))


if __name__ == "__main__":
    main()
