"""Compose and chart, their commands and variables unchanged, as processes against real servers."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support import wait
from tests.support.deployment import (
    DEPLOY,
    IMAGES,
    SECRETS,
    chart_objects,
    compose_environment,
    read_compose,
    read_image,
)
from tests.support.process_deployment import Addresses, Deployment, Part, answers_http, deployed
from tests.support.stores import S3_ACCESS_KEY, S3_SECRET_KEY, RedisServer, S3Server, redis_server
from tests.support.tls_proxy import tls_proxy

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
    """Map the addresses that a service binds, and that its health check calls, to its own."""
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
    made = {**os.environ, "NNI_DEPLOY_FOLDER": str(tmp_path)}
    subprocess.run([DEPLOY / "make-secrets"], env=made, check=True, capture_output=True)
    certificates = tmp_path / "certs"
    addresses = Addresses([*ALONE, "nats:4222"])
    # This Redis asks for no password.
    redis = f":{SECRETS['REDIS_PASSWORD']}@redis:6379"
    addresses.put("/run/secrets", str(certificates))
    addresses.put("/etc/nni/access", str(certificates / "access"))
    listening(addresses)
    bus = read_compose(secrets)["services"]["nats"]
    # Where the container has its files, ports and name for itself.
    (tmp_path / "bus").mkdir()
    for name in ("nats.conf", "users.conf", "tls.conf"):
        (tmp_path / name).write_text((DEPLOY / "nats" / name).read_text())
    bus_config = tmp_path / "nats.conf"
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

    with (
        encrypted(certificates, shared_redis.url.rpartition("//")[2].partition("/")[0]) as views,
        encrypted(certificates, shared_s3.endpoint.removeprefix("http://")) as bytes_,
    ):
        addresses.put(redis, views)
        addresses.put("s3:8333", bytes_)
        codes = run_compose(tmp_path, addresses, parts)

    assert codes == dict.fromkeys(ORDER, 0)


def encrypted(certificates: Path, address: str) -> AbstractContextManager[str]:
    """Put a TLS proxy in front of a plain-text server, as the deployment requires TLS."""
    return tls_proxy(address, certificates / "tls.crt", certificates / "tls.key")


def run_compose(folder: Path, addresses: Addresses, parts: Sequence[Part]) -> dict[str, int]:
    """Run an experiment in the parts, the manager restarted in mid-run; give the exit codes."""
    with deployed(folder / "run", addresses, parts) as deployment:
        deployment.ca = folder / "certs" / "ca.crt"
        created = deployment.call("POST", "/experiment", TOKEN, experiment_in(folder))
        experiment = created["experiment_id"]
        wait.until(lambda: finished(deployment, experiment), 60, "a first result")
        # A restart of the manager is no end of the experiments.
        assert deployment.stop("manager") == 0
        deployment.start(next(part for part in parts if part.name == "manager"))
        run_to_end(deployment, experiment)
        return {name: deployment.stop(name) for name in reversed(ORDER)}


def rendered(s3: S3Server) -> list[dict[str, Any]]:
    """Return the objects of the chart."""
    values = {
        "s3": {"endpoint": s3.endpoint, "accessKey": S3_ACCESS_KEY, "secretKey": S3_SECRET_KEY},
        "auth": {"token": TOKEN},
        "runnerPools": [{"name": "local"}],
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
    secrets = secrets_of(objects)
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
        own = variables_of("nats", pods["nats"], secrets)
        yield bus_server(number, pods["nats"]["command"], own, addresses, folder)
    for name in ORDER:
        check = pods[name]["startupProbe"]["exec"]["command"]
        variables = variables_of(name, pods[name], secrets)
        yield Part(name, read_image(IMAGES[name]).command, variables, check)


def bus_server(
    number: int,
    words: Sequence[str],
    variables: dict[str, str],
    addresses: Addresses,
    folder: Path,
) -> Part:
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
        for word in words
    ]
    return Part(name, command, variables | own)


def variables_of(name: str, pod: dict[str, Any], secrets: dict[str, str]) -> dict[str, str]:
    """Return the environment of a container, secrets included."""
    variables = dict(read_image(IMAGES[name]).environment) if name in IMAGES else {}
    for one in pod["env"]:
        source = one.get("valueFrom", {}).get("secretKeyRef")
        text = one.get("value", "") if source is None else secrets[source["key"]]
        # As Kubernetes does: what stands before it can be named.
        for before, value in variables.items():
            text = text.replace(f"$({before})", value)
        variables[one["name"]] = text
    return variables


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
    addresses = Addresses(
        [*ALONE, "demo-dispatcher:7502", *ports, *(f"{one}:8222" for one in servers)]
    )
    addresses.put("demo-dispatcher:7502", addresses.of("dispatcher:7502"))
    addresses.put("demo-manager:7501", addresses.of("manager:7501"))
    listening(addresses)
    (folder := tmp_path / "bus").mkdir()
    objects = rendered(shared_s3)
    secrets = secrets_of(objects)
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (folder / name).write_text(secrets[name])
    addresses.put("/etc/nni/tls", str(folder))

    with (
        redis_server(tmp_path / "redis") as redis,
        encrypted(folder, redis.url.rpartition("//")[2].partition("/")[0]) as views,
    ):
        # This Redis asks for no password.
        addresses.put(f":{secrets['redis-password']}@demo-redis:6379", views)
        bus: list[Part] = []
        services: list[Part] = []
        for part in chart_parts(objects, addresses, folder):
            (bus if part.name in servers else services).append(part)
        with deployed(tmp_path / "run", addresses, bus) as deployment:
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

    assert kept == {"EXPERIMENTS": 3, "INBOX": 3, "TASKS": 3, "LOGS": 3}
