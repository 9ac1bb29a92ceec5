"""Trials on a real agent and a real bus."""

import asyncio
import io
import json
import math
import os
import re
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import cause_pb2, report_pb2
from svc_common.storage.directory import DirectoryBlobStore
from tests.integration.trial_runner.harness import (
    AgentProcess,
    ManagerSide,
    until_dead,
    until_written,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

Script = Callable[[str], str]


@pytest.fixture
def script(shared_folder: Path, request: pytest.FixtureRequest) -> Script:
    """Write a trial script into a code directory; return the command that runs it."""
    folder = shared_folder / "code"
    folder.mkdir(exist_ok=True)

    def write(text: str) -> str:
        name = re.sub(r"\W", "_", request.node.name)
        (folder / f"{name}.py").write_text(text)
        return f"python3 {name}.py"

    return write


@pytest.fixture
def run(manager: ManagerSide, shared_folder: Path, request: pytest.FixtureRequest) -> Any:
    """Run one trial to its end; return its id and its last report."""
    count = 0
    (shared_folder / "code").mkdir(exist_ok=True)

    async def call(
        command: str, parameters: Any = None, **fields: Any
    ) -> tuple[str, report_pb2.AttemptExited]:
        nonlocal count
        count += 1
        trial_id = f"{re.sub(r'[^A-Za-z0-9]', '', request.node.name)[-60:]}{count}"
        if "code_archive" not in fields:
            fields.setdefault("code_directory", shared_folder / "code")
        await manager.publish(trial_id, manager.spec(command, **fields), parameters)
        return trial_id, (await manager.until(trial_id, "exited")).exited

    return call


# --- ordinary trials ---


@pytest.mark.claim("platform", 34)
async def test_folder_of_an_ended_trial_is_complete(run: Any, manager: ManagerSide) -> None:
    trial_id, exited = await run("true")

    folder = manager.trial_folder(trial_id)
    assert exited.exit_code == 0
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == {
        "run.sh",
        "parameter.cfg",
        "stdout",
        "stderr",
        "trial.log",
        ".nni/state",
    }
    assert re.fullmatch(r"0 \d{13}", (folder / ".nni/state").read_text())


@pytest.mark.claim("platform", 35)
async def test_run_script_records_the_start(
    run: Any, manager: ManagerSide, shared_folder: Path
) -> None:
    trial_id, _ = await run("true")

    text = (manager.trial_folder(trial_id) / "run.sh").read_text()
    assert text.splitlines()[1].startswith("cd ")
    for name in (
        "NNI_PLATFORM",
        "NNI_EXP_ID",
        "NNI_SYS_DIR",
        "NNI_TRIAL_JOB_ID",
        "NNI_OUTPUT_DIR",
        "NNI_TRIAL_SEQ_ID",
        "NNI_CODE_DIR",
        "MULTI_PHASE",
    ):
        assert f"export {name}=" in text


async def test_recorded_script_runs_by_itself(run: Any, manager: ManagerSide) -> None:
    trial_id, _ = await run("echo $NNI_TRIAL_JOB_ID; echo problem >&2; exit 3")
    folder = manager.trial_folder(trial_id)

    process = await asyncio.create_subprocess_exec(
        str(folder / "run.sh"), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()

    assert output.decode() == f"{trial_id}\n"
    assert (folder / "stderr").read_text() == "problem\n"
    assert re.fullmatch(r"3 \d{13}\n", (folder / ".nni/state").read_text())


@pytest.mark.claim("platform", 37)
async def test_output_of_a_trial_is_in_its_files(run: Any, manager: ManagerSide) -> None:
    trial_id, _ = await run("echo x; echo y >&2")

    folder = manager.trial_folder(trial_id)
    assert (folder / "trial.log").read_text() == "x\n"
    assert (folder / "stdout").read_text() == "x\n"
    assert (folder / "stderr").read_text() == "y\n"


async def test_python_trial_reports_through_a_warm_interpreter(
    run: Any, script: Script, manager: ManagerSide
) -> None:
    command = script(
        "import nni\nparameters = nni.get_next_parameter()\n"
        "nni.report_intermediate_result(0.5)\nnni.report_final_result(parameters['x'] ** 2)\n"
    )

    trial_id, exited = await run(command, {"x": 3})

    assert exited.exit_code == 0
    assert manager.kinds(trial_id) == ["started", "metric", "metric", "exited"]
    assert [report.sequence for report in manager.reports[trial_id]] == [0, 1, 2, 3]
    assert manager.metrics(trial_id) == [0.5, 9]
    assert manager.reports[trial_id][0].started.warm


async def test_shell_trial_reports_with_nni_trial(run: Any, manager: ManagerSide) -> None:
    trial_id, exited = await run(
        'nni-trial report "$(nni-trial get a/b)" && nni-trial final 7', {"a": {"b": 1.5}}
    )

    assert exited.exit_code == 0
    assert manager.metrics(trial_id) == [1.5, 7]


@pytest.mark.claim("platform", 36)
@pytest.mark.parametrize(("count", "seen"), [(0, ""), (None, "unset"), (1, "0")])
async def test_gpu_number_decides_what_the_trial_sees(
    run: Any, manager: ManagerSide, count: int | None, seen: str
) -> None:
    fields = {} if count is None else {"gpu_number": count}

    trial_id, _ = await run("echo ${CUDA_VISIBLE_DEVICES-unset}", **fields)

    assert (manager.trial_folder(trial_id) / "stdout").read_text() == f"{seen}\n"


async def test_services_secrets_do_not_reach_the_trial(run: Any, manager: ManagerSide) -> None:
    trial_id, _ = await run("env")

    text = (manager.trial_folder(trial_id) / "stdout").read_text()
    assert "NNI_TOKEN=" not in text
    assert "NNI_NATS_URL=" not in text
    assert "NNI_TRIAL_TOKEN=" in text


async def test_environment_of_the_client_is_used(
    run: Any, manager: ManagerSide, tmp_path: Path
) -> None:
    file = tmp_path / "environment.json"
    variables = {"PATH": os.environ["PATH"], "MINE": "yes"}
    file.write_text(json.dumps({"environment": variables, "interpreter": "/somewhere/bin/python3"}))

    trial_id, _ = await run("echo $MINE $SECRET_OF_THE_MACHINE $PATH", environment_file=str(file))

    mine, path = (manager.trial_folder(trial_id) / "stdout").read_text().split()
    assert mine == "yes"
    assert path.split(":")[1] == "/somewhere/bin"


async def test_code_archive_is_copied_for_each_trial(
    run: Any, manager: ManagerSide, agent: AgentProcess
) -> None:
    buffer = io.BytesIO()
    text = b"import os; print(sorted(os.listdir())); open('made', 'w').close()"
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("t.py")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    blobs = DirectoryBlobStore(agent.home / "nni/blobs")
    key = await blobs.put(buffer.getvalue())
    archive = value_pb2.BlobRef(sha256=key.removeprefix("sha256/"))

    for _ in range(2):
        trial_id, exited = await run("python3 t.py", code_archive=archive)

        folder = manager.trial_folder(trial_id)
        assert exited.exit_code == 0
        assert (folder / "stdout").read_text() == "['t.py']\n"
        assert (folder / "code/made").exists()
        assert manager.reports[trial_id][0].started.warm


# --- values ---


async def test_unusual_metrics_survive(run: Any, script: Script, manager: ManagerSide) -> None:
    command = script(
        "import nni\nnni.get_next_parameter()\n"
        "for value in (float('nan'), float('inf'), {'default': 1, 'loss': 2}, 'text', None):\n"
        "    nni.report_intermediate_result(value)\n"
    )

    trial_id, _ = await run(command)

    first, *others = manager.metrics(trial_id)
    assert math.isnan(first)
    assert others == [math.inf, {"default": 1, "loss": 2}, "text", None]


async def test_large_metric_goes_to_the_byte_store(
    run: Any, script: Script, manager: ManagerSide, agent: AgentProcess
) -> None:
    command = script(
        "import nni\nnni.get_next_parameter()\n"
        "nni.report_intermediate_result('x' * 300_000)\nnni.report_final_result(1)\n"
    )

    trial_id, _ = await run(command)

    reports = [r.metric for r in manager.reports[trial_id] if r.WhichOneof("kind") == "metric"]
    blob = reports[0].value.blob_value
    stored = next((agent.home / "nni/blobs").rglob(blob.sha256))
    assert json.loads(stored.read_text()) == "x" * 300_000
    assert [report.type for report in reports] == [1, 2]


# --- failures ---


async def test_failing_trial_reports_code_and_last_lines(run: Any, script: Script) -> None:
    _, exited = await run(script("raise RuntimeError('no luck')\n"))

    assert exited.cause == report_pb2.EXIT_CAUSE_ENDED
    assert exited.exit_code == 1
    assert exited.detail.splitlines()[-1] == "RuntimeError: no luck"


async def test_trial_that_dies_at_once_is_reported_with_its_signal(run: Any) -> None:
    _, exited = await run("kill -9 $$")

    assert not exited.HasField("exit_code")
    assert exited.signal == 9


async def test_missing_command_is_an_ordinary_failure(run: Any) -> None:
    _, exited = await run("no-such-command-here")

    assert exited.exit_code == 127
    assert "no-such-command-here" in exited.detail


async def test_missing_code_directory_loses_the_attempt(
    manager: ManagerSide, tmp_path: Path
) -> None:
    await manager.publish("homeless", manager.spec("true", code_directory=tmp_path / "gone"))

    loss = (await manager.until("homeless", "lost")).lost.loss
    assert loss.cause == cause_pb2.LOSS_CAUSE_NOT_STARTED
    assert str(tmp_path / "gone") in loss.detail


async def test_megabytes_of_output_are_cut_and_do_not_block(run: Any, manager: ManagerSide) -> None:
    trial_id, exited = await run(
        "head -c 20000000 /dev/zero | tr '\\0' x; echo the end; echo done >&2"
    )

    folder = manager.trial_folder(trial_id)
    text = (folder / "stdout").read_bytes()
    assert exited.exit_code == 0
    assert 1_000_000 < len(text) < 1_000_200
    assert b"[nni] output limit of 1000000 bytes reached" in text
    assert text.endswith(b"xxx" + b"the end\n")
    assert (folder / "stderr").read_text() == "done\n"


async def test_report_after_the_end_is_refused(run: Any, manager: ManagerSide) -> None:
    trial_id, _ = await run("echo $NNI_TRIAL_SOCKET $NNI_TRIAL_TOKEN")
    path, token = (manager.trial_folder(trial_id) / "stdout").read_text().split()

    def late() -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(json.dumps({"op": "hello", "token": token, "pid": 1}).encode() + b"\n")
            return client.recv(4096)

    answer = json.loads(await asyncio.to_thread(late))

    assert answer["ok"] is False
    assert "over" in answer["error"]


async def test_grandchild_that_holds_the_pipe_delays_the_end_by_the_grace(
    run: Any, manager: ManagerSide
) -> None:
    begin = asyncio.get_running_loop().time()

    trial_id, exited = await run("sleep 600 & echo $!", grace_s=0.5)

    assert exited.exit_code == 0
    assert asyncio.get_running_loop().time() - begin < 60  # the grandchild runs ten times as long
    await until_dead(int((manager.trial_folder(trial_id) / "stdout").read_text()))


async def test_output_of_a_background_child_within_the_grace_counts(
    run: Any, manager: ManagerSide
) -> None:
    trial_id, _ = await run("(sleep 0.2; echo late; nni-trial final 5) & echo early", grace_s=30)

    assert (manager.trial_folder(trial_id) / "stdout").read_text() == "early\nlate\n"
    assert manager.metrics(trial_id) == [5]
    assert manager.kinds(trial_id)[-1] == "exited"


@pytest.mark.claim("platform", 20)
async def test_time_limit_ends_the_trial(run: Any) -> None:
    _, exited = await run("sleep 60", time_limit_s=0.3)

    assert exited.cause == report_pb2.EXIT_CAUSE_TIME_LIMIT


async def test_trial_that_ignores_term_is_killed_with_all_its_children(
    run: Any, manager: ManagerSide, agent: AgentProcess
) -> None:
    name = "ignoresterm1"
    command = (
        "trap '' TERM; setsid bash -c 'trap \"\" TERM; echo $$; while true; do sleep 1; done' & "
        "while true; do sleep 1; done"
    )
    await manager.publish(name, manager.spec(command, grace_s=0.5))
    await manager.until(name, "started")
    output = manager.trial_folder(name) / "stdout"
    stray = int(await until_written(output))

    manager.stop(agent.facts["runner"], name)
    exited = (await manager.until(name, "exited")).exited

    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert exited.signal == 9
    await until_dead(stray)


async def test_trial_may_report_a_last_result_when_it_is_stopped(
    manager: ManagerSide, script: Script, agent: AgentProcess, shared_folder: Path
) -> None:
    command = script(
        "import nni, os, signal, sys\nnni.get_next_parameter()\n"
        "def end(*_):\n    nni.report_final_result(42)\n    sys.exit(0)\n"
        # The read ends also when the signal comes just before it, unlike `pause`.
        "ends, wakes = os.pipe()\nos.set_blocking(wakes, False)\nsignal.set_wakeup_fd(wakes)\n"
        "signal.signal(signal.SIGTERM, end)\nnni.report_intermediate_result(1)\n"
        "while True:\n    os.read(ends, 1)\n"
    )
    spec = manager.spec(command, code_directory=shared_folder / "code")
    await manager.publish("lastword1", spec)
    await manager.until("lastword1", "metric")

    manager.stop(agent.facts["runner"], "lastword1")
    exited = (await manager.until("lastword1", "exited")).exited

    assert manager.metrics("lastword1") == [1, 42]
    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert exited.exit_code == 0


async def test_task_delivered_twice_runs_once(manager: ManagerSide, tmp_path: Path) -> None:
    spec = manager.spec(f"echo once >>{tmp_path}/runs; sleep 0.3")
    await manager.publish("twice1", spec)
    await manager.until("twice1", "started")
    await manager.bus.tasks.publish("local", _task(manager, "twice1", spec), message_id="again")
    await manager.until("twice1", "exited")
    await manager.bus.tasks.publish("local", _task(manager, "twice1", spec), message_id="later")

    await manager.publish("twice2", manager.spec("true"))
    await manager.until("twice2", "exited")

    assert (tmp_path / "runs").read_text() == "once\n"
    assert manager.kinds("twice1") == ["started", "exited"]


def _task(manager: ManagerSide, trial_id: str, spec: Any) -> bytes:
    return task_pb2.TrialTask(
        experiment_id=manager.experiment_id, trial_id=trial_id, attempt=1, spec=spec
    ).SerializeToString()


async def test_dropped_trial_ends_without_a_report(
    manager: ManagerSide, agent: AgentProcess
) -> None:
    await manager.publish("dropped1", manager.spec("sleep 60"))
    started = await manager.until("dropped1", "started")

    manager.control(
        agent.facts["runner"],
        drop_trial=task_pb2.DropTrial(
            experiment_id=manager.experiment_id,
            trial_id="dropped1",
            attempt=1,
            claim_id=started.claim_id,
        ),
    )

    await until_dead(started.started.pid)
    await manager.publish("dropped2", manager.spec("true"))
    await manager.until("dropped2", "exited")
    assert manager.kinds("dropped1") == ["started"]


# --- GPUs ---


@pytest.mark.claim("platform", 79)
async def test_trials_per_gpu_bound_how_many_run_at_once(
    manager: ManagerSide, agent: AgentProcess
) -> None:
    options = {"maxTrialNumberPerGpu": 2, "gpuIndices": [1], "useActiveGpu": False}
    spec = manager.spec("sleep 60", gpu_number=1, platform_options=options)

    for name in ("gpu1", "gpu2", "gpu3"):
        await manager.publish(name, spec)
    waits = (await manager.until("gpu3", "waits")).waits
    first = (await manager.until("gpu1", "started")).started
    second = (await manager.until("gpu2", "started")).started

    assert list(first.gpu_indices) == list(second.gpu_indices) == [1]
    assert waits.reason == "waiting for 1 GPU: 1 in use by trial gpu1 and gpu2"
    manager.stop(agent.facts["runner"], "gpu1")
    third = (await manager.until("gpu3", "started")).started
    assert list(third.gpu_indices) == [1]
    for name in ("gpu2", "gpu3"):
        manager.stop(agent.facts["runner"], name)
        await manager.until(name, "exited")


async def test_trial_that_waits_for_a_gpu_can_be_stopped(
    manager: ManagerSide, agent: AgentProcess
) -> None:
    await manager.publish("gpu9", manager.spec("true", gpu_number=9))
    waits = (await manager.until("gpu9", "waits")).waits

    manager.stop(agent.facts["runner"], "gpu9")
    exited = (await manager.until("gpu9", "exited")).exited

    assert waits.reason == "waiting for 9 GPUs: this machine has 2"
    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert not exited.HasField("exit_code")
