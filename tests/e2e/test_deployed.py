"""Compose and chart, their commands and variables unchanged, as processes against real servers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support import wait
from tests.support.deployed import Addresses, Deployment, Part, answers_http, deployed
from tests.support.deployment import (
    DEPLOY,
    IMAGES,
    SECRETS,
    chart_objects,
    compose_environment,
    read_compose,
    read_image,
)
from tests.support.stores import S3_ACCESS_KEY, S3_SECRET_KEY, RedisServer, S3Server, redis_server

TOKEN = SECRETS["NNI_TOKEN"]
TRIALS = 24
TRIAL = """\
import time
import nni
x = nni.get_next_parameter()["x"]
time.sleep(0.3)
nni.report_final_result(x)
"""
ORDER = ("dispatcher", "manager", "trial-runner")
ALONE = ("dispatcher:7502", "manager:7501", "manager:8080", "trial-runner:7503")


def listening(addresses: Addresses) -> None:
    """Say that what a service binds, and what its health check asks, is its own address."""
    for name in ALONE:
        port = name.rpartition(":")[2]
        addresses.put(f"0.0.0.0:{port}", f"0.0.0.0:{addresses.port(name)}")
        addresses.put(f"127.0.0.1:{port}", f"127.0.0.1:{addresses.port(name)}")


def experiment_in(folder: Path) -> dict[str, Any]:
    code = folder / "code"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL)
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


@pytest.mark.timeout(180)
def test_compose_file_describes_a_system_that_works(
    shared_redis: RedisServer, shared_s3: S3Server, tmp_path: Path
) -> None:
    secrets = {**SECRETS, "NNI_S3_ACCESS_KEY": S3_ACCESS_KEY, "NNI_S3_SECRET_KEY": S3_SECRET_KEY}
    addresses = Addresses([*ALONE, "nats:4222"])
    addresses.put("redis:6379", shared_redis.url.rpartition("//")[2].partition("/")[0])
    addresses.put("s3:8333", shared_s3.endpoint.removeprefix("http://"))
    listening(addresses)
    bus = read_compose(secrets)["services"]["nats"]
    # Where the container has its files, ports and name for itself.
    (tmp_path / "bus").mkdir()
    (bus_config := tmp_path / "nats.conf").write_text((DEPLOY / "nats/nats.conf").read_text())
    monitor = Addresses(["8222"]).port("8222")
    command = [
        {"/etc/nats/nni.conf": str(bus_config), "8222": monitor}.get(w, w) for w in bus["command"]
    ]
    variables = bus["environment"] | {
        "NNI_NATS_PORT": addresses.port("nats:4222"),
        "NNI_NATS_STORE": str(tmp_path / "bus"),
    }
    parts = [
        Part("nats", command, variables),
        *(
            Part(
                name,
                read_image(IMAGES[name]).command,
                compose_environment(name, secrets),
                read_image(IMAGES[name]).health_check,
            )
            for name in ORDER
        ),
    ]

    with deployed(tmp_path / "run", addresses, parts) as deployment:
        created = deployment.call("POST", "/experiment", TOKEN, experiment_in(tmp_path))
        experiment = created["experiment_id"]
        wait.until(lambda: finished(deployment, experiment), 60, "a first result")
        # A restart of the manager is no end of the experiments.
        assert deployment.stop("manager") == 0
        deployment.start(next(part for part in parts if part.name == "manager"))
        run_to_end(deployment, experiment)
        codes = {name: deployment.stop(name) for name in reversed(ORDER)}

    assert codes == dict.fromkeys(ORDER, 0)


def chart_parts(
    addresses: Addresses, s3: S3Server, redis: RedisServer, folder: Path
) -> Iterator[Part]:
    """Give the parts of the chart: three servers of the bus, then the services."""
    values = {
        "s3": {"endpoint": s3.endpoint, "accessKey": S3_ACCESS_KEY, "secretKey": S3_SECRET_KEY},
        "auth": {"token": TOKEN},
        "runnerPools": [{"name": "local"}],
    }
    # This Redis asks for no password.
    addresses.put(f":{TOKEN}@demo-redis:6379", redis.url.rpartition("//")[2].partition("/")[0])
    objects = chart_objects(values)
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
        yield bus_server(number, pods["nats"], addresses, folder)
    for name in ORDER:
        check = pods[name]["startupProbe"]["exec"]["command"]
        yield Part(name, read_image(IMAGES[name]).command, variables_of(name, pods[name]), check)


def bus_server(number: int, pod: dict[str, Any], addresses: Addresses, folder: Path) -> Part:
    name = f"demo-nats-{number}"
    (folder / name).mkdir()
    own = {
        "NNI_NATS_NAME": name,
        "NNI_NATS_PORT": addresses.port(f"{name}.demo-nats:4222"),
        "NNI_NATS_CLUSTER_PORT": addresses.port(f"{name}.demo-nats:6222"),
        "NNI_NATS_STORE": str(folder / name),
    }
    command = [
        addresses.port(f"{name}:8222") if word == "8222" else word.replace("/etc/nats", str(folder))
        for word in pod["command"]
    ]
    return Part(name, command, variables_of("nats", pod) | own)


def variables_of(name: str, pod: dict[str, Any]) -> dict[str, str]:
    """Give the environment of a container, secrets put in."""
    secrets = {"token": TOKEN, "s3-access-key": S3_ACCESS_KEY, "s3-secret-key": S3_SECRET_KEY}
    variables = dict(read_image(IMAGES[name]).environment) if name in IMAGES else {}
    for one in pod["env"]:
        source = one.get("valueFrom", {}).get("secretKeyRef")
        text = one.get("value", "") if source is None else secrets[source["key"]]
        variables[one["name"]] = text.replace("$(NNI_TOKEN)", TOKEN)
    return variables


def copies(monitor: str) -> dict[str, int]:
    """Give how many copies the bus keeps of each stream."""
    with urlopen(f"http://{monitor}/jsz?streams=true&config=true", timeout=10) as answer:
        (account,) = json.load(answer)["account_details"]
    return {one["name"]: one["config"]["num_replicas"] for one in account["stream_detail"]}


@pytest.mark.timeout(240)
def test_chart_describes_a_system_that_outlives_a_server_of_its_bus(
    shared_s3: S3Server, tmp_path: Path
) -> None:
    servers = [f"demo-nats-{number}" for number in range(3)]
    ports = [f"{one}.demo-nats:{port}" for one in servers for port in (4222, 6222)]
    addresses = Addresses(
        [*ALONE, "demo-dispatcher:7502", *ports, *(f"{one}:8222" for one in servers)]
    )
    addresses.put("demo-dispatcher:7502", addresses.of("dispatcher:7502"))
    listening(addresses)
    (folder := tmp_path / "bus").mkdir()

    with redis_server(tmp_path / "redis") as redis:
        bus: list[Part] = []
        services: list[Part] = []
        for part in chart_parts(addresses, shared_s3, redis, folder):
            (bus if part.name in servers else services).append(part)
        with deployed(tmp_path / "run", addresses, bus) as deployment:
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

    assert kept == {"EXPERIMENTS": 3, "INBOX": 3, "TASKS": 3, "LOGS": 3}
