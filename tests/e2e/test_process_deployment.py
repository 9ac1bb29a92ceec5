"""Compose and chart, their commands and variables unchanged, as processes against real servers."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from safetensors.numpy import load_file

from nni.compression.remote import submit_job
from tests.support import wait
from tests.support.compose_deployment import (
    ALONE,
    ORDER,
    TOKEN,
    ComposeDeployment,
    compose_deployment,
    encrypted,
    listening,
)
from tests.support.compression_job import job_of, write_code
from tests.support.deployment import (
    SERVICE_IMAGES,
    chart_objects,
    read_image,
)
from tests.support.ports import free_port
from tests.support.process_deployment import Addresses, Deployment, Part, answers_http, deployed
from tests.support.servers import require_binary
from tests.support.stores import S3_ACCESS_KEY, S3_SECRET_KEY, S3Server, redis_server

TRIALS = 24
TRIAL = """\
import time
import nni
x = nni.get_next_parameter()["x"]
time.sleep(0.3)
nni.report_final_result(x)
"""
GROUP_OF_FILES = 65532
"""`fsGroup` of the pods."""


def code_folder(folder: Path) -> Path:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "trial.py").write_text(TRIAL)
    return code


def experiment_in(folder: Path) -> dict[str, Any]:
    code = code_folder(folder)
    return {
        "experimentName": "deployed",
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "python3 trial.py",
        "trialCodeDirectory": str(code),
        "trialConcurrency": 4,
        "maxTrialNumber": TRIALS,
        "tuner": {"name": "TPE", "classArgs": {"seed": 0}},
        "trainingService": {"platform": "local"},
    }


def status(deployment: Deployment, experiment: str) -> str:
    with contextlib.suppress(OSError):
        answer = deployment.call("GET", f"/experiments/{experiment}/check-status", TOKEN)
        return str(answer["status"])
    return ""


def finished(deployment: Deployment, experiment: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = deployment.call(
        "GET", f"/experiments/{experiment}/trial-jobs", TOKEN
    )
    return [job for job in jobs if job["status"] == "SUCCEEDED"]


def run_to_end(deployment: Deployment, experiment: str) -> None:
    wait.until(lambda: status(deployment, experiment) in {"DONE", "ERROR"}, 90, "the end")
    assert status(deployment, experiment) == "DONE"
    jobs = finished(deployment, experiment)
    assert len(jobs) == TRIALS
    assert sorted(job["sequenceId"] for job in jobs) == list(range(TRIALS))
    assert all(len(job["finalMetricData"]) == 1 for job in jobs)


@pytest.mark.timeout(240)
def test_compose_file_describes_a_system_that_works(
    shared_s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with compose_deployment(tmp_path, shared_s3, [code_folder(tmp_path)]) as deployment:
        run_compose(tmp_path, deployment)
        for name, text in deployment.processes.client_variables(TOKEN).items():
            monkeypatch.setenv(name, text)
        pruned = compress(tmp_path)
        codes = {name: deployment.processes.stop(name) for name in reversed(ORDER)}

    assert codes == dict.fromkeys(ORDER, 0)
    weights = load_file(pruned / "masks.safetensors")["0|weight"]
    assert int(weights.sum()) == weights.size // 2


def compress(folder: Path) -> Path:
    """Prune a model like a user on another machine; return the files of the one step."""
    code = write_code(folder / "elsewhere")
    with submit_job(job_of(1, speedup=False), code, name="halved") as job:
        status = job.wait()
        assert status.complete, status
        return job.fetch(folder / "pruned")


def run_compose(folder: Path, deployment: ComposeDeployment) -> None:
    """Run an experiment in the parts, the manager restarted in mid-run."""
    processes = deployment.processes
    created = processes.call("POST", "/experiment", TOKEN, experiment_in(folder))
    experiment = created["experiment_id"]
    wait.until(lambda: finished(processes, experiment), 60, "a first result")
    # A restart of the manager is no end of the experiments.
    assert processes.stop("manager") == 0
    processes.start(deployment.parts["manager"])
    run_to_end(processes, experiment)


def rendered(s3: S3Server) -> list[dict[str, Any]]:
    """Return the objects of the chart."""
    values = {
        "s3": {"endpoint": s3.endpoint, "accessKey": S3_ACCESS_KEY, "secretKey": S3_SECRET_KEY},
        "auth": {"token": TOKEN},
        "runnerPools": [{"name": "local"}],
        "fleet": {"enabled": True, "frontHost": "127.0.0.1", "frontPort": free_port()},
    }
    return chart_objects(values)


def secrets_of(objects: list[dict[str, Any]]) -> dict[str, str]:
    """Return the content of the chart's secret."""
    (secret,) = (one["data"] for one in objects if one["kind"] == "Secret")
    return {key: base64.b64decode(text).decode() for key, text in secret.items()}


def chart_parts(
    objects: list[dict[str, Any]], addresses: Addresses, folder: Path
) -> Iterator[Part]:
    """Return the parts of the chart: three servers of the bus, then the services."""
    files = secret_files(objects, folder)
    (config,) = (one["data"] for one in objects if one["kind"] == "ConfigMap")
    for name, text in config.items():
        (folder / name).write_text(text)
    pods = {
        one["spec"]["template"]["spec"]["containers"][0]["name"]: (
            one["spec"]["template"]["spec"]["containers"][0]
        )
        for one in objects
        if one["kind"] in {"Deployment", "StatefulSet"}
    }
    for number in range(3):
        own = variables_of("nats", pods["nats"])
        mounted = mounted_files(objects, "nats", files)
        yield bus_server(number, pods["nats"]["command"], own, addresses, folder, mounted)
    for name in ORDER:
        image = read_image(SERVICE_IMAGES[name])
        pod = spec_of(objects, name)["securityContext"]
        own_command = [*pods[name].get("command", []), *pods[name].get("args", [])]
        yield Part(
            name,
            own_command or (*image.entrypoint, *image.command),
            variables_of(name, pods[name]),
            image.health_check,
            mounted_files(objects, name, files),
            f"{pod['runAsUser']}:{pod['runAsGroup']}",
            pods[name]["securityContext"]["capabilities"].get("add", []),
        )


def spec_of(objects: list[dict[str, Any]], container: str) -> dict[str, Any]:
    """Return the specification of the pod that has a container."""
    specs = [
        one["spec"]["template"]["spec"] for one in objects if "template" in one.get("spec", {})
    ]
    (spec,) = (one for one in specs if one["containers"][0]["name"] == container)
    assert isinstance(spec, dict)
    return spec


def secret_files(objects: list[dict[str, Any]], folder: Path) -> dict[str, Path]:
    """Write the keys of the chart's secret to files, as a cluster has them, for root only."""
    (place := folder / "secret").mkdir(exist_ok=True)
    files = {}
    for key, text in secrets_of(objects).items():
        files[key] = place / key
        files[key].write_text(text)
        files[key].chmod(0o444 if key.endswith(".crt") else 0o440)
        os.chown(files[key], -1, GROUP_OF_FILES if os.geteuid() == 0 else -1)
    return files


def mounted_files(
    objects: list[dict[str, Any]], container: str, files: dict[str, Path]
) -> dict[str, Path]:
    """Return the files of secrets of a container by their paths in it."""
    spec = spec_of(objects, container)
    mounts = {one["name"]: one["mountPath"] for one in spec["containers"][0]["volumeMounts"]}
    return {
        f"{mounts[volume['name']]}/{item['path']}": files[item["key"]]
        for volume in spec["volumes"]
        if "secret" in volume
        for item in volume["secret"]["items"]
    }


def bus_server(
    number: int,
    words: Sequence[str],
    variables: dict[str, str],
    addresses: Addresses,
    folder: Path,
    mounted: dict[str, Path],
) -> Part:
    name = f"demo-nats-{number}"
    (folder / name).mkdir()
    (running := folder / f"{name}-run").mkdir()
    own = {
        "NNI_NATS_NAME": name,
        "NNI_NATS_PORT": addresses.port(f"{name}.demo-nats:4222"),
        "NNI_NATS_CLUSTER_PORT": addresses.port(f"{name}.demo-nats:6222"),
        "NNI_NATS_STORE": str(folder / name),
    }
    command = [
        word.replace("-m 8222", f"-m {addresses.port(f'{name}:8222')}")
        .replace("/etc/nats", str(folder))
        .replace("/run/nats", str(running))
        .replace("start.sh nats-server", f"start.sh {require_binary('nats-server')}")
        for word in words
    ]
    return Part(name, command, variables | own, secrets=mounted)


def variables_of(name: str, pod: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a container, which has no secret."""
    known = name in SERVICE_IMAGES
    variables = dict(read_image(SERVICE_IMAGES[name]).environment) if known else {}
    for one in pod["env"]:
        assert "secretKeyRef" not in one.get("valueFrom", {})
        text = one.get("value", "")
        # As Kubernetes does: what stands before it can be named.
        for before, value in variables.items():
            text = text.replace(f"$({before})", value)
        variables[one["name"]] = text
    return variables


def claim_of_agents(folder: Path) -> Path:
    """Return the claim of the users of agents, as the first container of the bus leaves it."""
    (claim := folder / "agents").mkdir()
    claim.chmod(0o777)
    (claim / "agents.conf").touch()
    return claim


def copies(monitor: str) -> dict[str, int]:
    """Return the number of replicas of each stream."""
    with urlopen(f"http://{monitor}/jsz?streams=true&config=true", timeout=10) as answer:
        (account,) = json.load(answer)["account_details"]
    return {one["name"]: one["config"]["num_replicas"] for one in account["stream_detail"]}


@pytest.mark.timeout(240)
def test_chart_describes_a_system_that_outlives_a_server_of_its_bus(
    shared_s3: S3Server, tmp_path: Path
) -> None:
    servers = [f"demo-nats-{number}" for number in range(3)]
    ports = [f"{one}.demo-nats:{port}" for one in servers for port in (4222, 6222)]
    addresses = Addresses([*ALONE, *ports, *(f"{one}:8222" for one in servers)])
    for name in ("dispatcher:7502", "compressor:7504", "nas:7505", "manager:7501"):
        addresses.put(f"demo-{name}", addresses.of(name))
    addresses.put("demo-manager-front:7506", addresses.of("manager:7506"))
    listening(addresses)
    (folder := tmp_path / "bus").mkdir()
    agents = claim_of_agents(tmp_path)
    addresses.put("/var/lib/nni/agents", str(agents))
    objects = rendered(shared_s3)
    secrets = secrets_of(objects)
    for name in ("ca.crt", "redis.crt", "redis.key"):
        (folder / name).write_text(secrets[name])

    with (
        redis_server(tmp_path / "redis", secrets["redis-password"]) as redis,
        encrypted(folder, "redis", redis.address) as views,
    ):
        addresses.put("demo-redis:6379", views)
        bus: list[Part] = []
        services: list[Part] = []
        for part in chart_parts(objects, addresses, folder):
            (bus if part.name in servers else services).append(part)
        shared = [code_folder(tmp_path), agents]
        with deployed(tmp_path / "run", addresses, bus, shared) as deployment:
            deployment.ca = folder / "ca.crt"
            for one in servers:
                healthy = f"http://{addresses.of(f'{one}:8222')}/healthz"
                wait.until(lambda url=healthy: answers_http(url), 60, one)  # type: ignore[misc] # bound now
            for part in services:
                deployment.start(part)
            created = deployment.call("POST", "/experiment", TOKEN, experiment_in(tmp_path))
            experiment = created["experiment_id"]
            wait.until(lambda: finished(deployment, experiment), 60, "a first result")
            kept = copies(addresses.of(f"{servers[0]}:8222"))

            deployment.kill(servers[0])

            run_to_end(deployment, experiment)

    # It has written its users, and all servers have read them, before it is healthy.
    assert (agents / "agents.json").exists()
    assert kept == {"EXPERIMENTS": 3, "INBOX": 3, "TASKS": 3, "LOGS": 3, "POOLS": 3}
