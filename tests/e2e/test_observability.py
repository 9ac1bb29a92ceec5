"""Telemetry of the services: metrics, traces, logs, and explanations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.parser import text_string_to_metric_families

from tests.support.experiments import PATIENT, write_experiment
from tests.support.local_shape import LocalShape, running_shape
from tests.support.nnictl import Nnictl
from tests.support.otlp_collector import Collector, otlp_collector
from tests.support.servers import require_binary
from tests.support.wait import until

SERVICES = ("manager", "dispatcher", "trial-runner")
TRACED_TRIAL = """\
import os

import nni

x = nni.get_next_parameter()["x"]
print("context", os.environ.get("TRACEPARENT"), flush=True)
nni.report_final_result(x)
"""
FAILING_TRIAL = """\
import sys

import nni

nni.get_next_parameter()
print("about to fail")
sys.exit("no such data set")
"""
TALKING_TRIAL = """\
import signal
import nni

nni.get_next_parameter()
print("first line", flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with otlp_collector() as made:
        yield made


@pytest.fixture(scope="module")
def shape(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalShape]:
    """Services with everything that can be watched switched on."""
    require_binary("nats-server")
    variables = {
        "NNI_METRICS": "127.0.0.1:0",
        "NNI_LOG_LEVEL": "debug",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "NNI_RUNNER_FAKE_GPUS": "1",
    }
    with running_shape(tmp_path_factory.mktemp("observed"), **variables) as made:
        yield made


@pytest.fixture
def nnictl(shape: LocalShape) -> Nnictl:
    return Nnictl(shape)


def lines(shape: LocalShape, service: str) -> list[dict[str, Any]]:
    """Return the whole log lines of a service; what follows the last one is being written."""
    text = (shape.home / "log" / f"{service}.log").read_text()
    whole = text.rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


def get(url: str) -> str:
    with build_opener(ProxyHandler({})).open(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def figures(text: str) -> dict[str, float]:
    """Read the text of Prometheus; samples of one name are added up."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def metrics_of(shape: LocalShape, service: str) -> dict[str, float]:
    if service == "manager":
        return figures(get(f"{shape.endpoint()['http']}/metrics"))
    ready = next(line for line in lines(shape, service) if line["event"] == "service ready")
    return figures(get(f"http://{ready['metrics']}/metrics"))


@pytest.fixture(scope="module")
def done(shape: LocalShape, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An experiment of three trials that is done."""
    config = write_experiment(
        tmp_path_factory.mktemp("traced"), TRACED_TRIAL, maxTrialNumber=3, trialConcurrency=1
    )
    experiment = Nnictl(shape).create(config)
    shape.wait_for(experiment, "DONE")
    return experiment


def test_every_service_shows_its_figures(shape: LocalShape, done: str) -> None:
    found = {service: metrics_of(shape, service) for service in SERVICES}

    assert all(figures["nni_build_info"] == 1 for figures in found.values())
    assert found["manager"]["nni_events_appended_total"] > 10
    assert found["manager"]["nni_trial_duration_seconds_count"] >= 3
    assert found["manager"]["nni_decision_seconds_count"] > 5
    # On a busy machine the agent's presence may be late.
    until(lambda: metrics_of(shape, "manager").get("nni_agents") == 1, 60)
    assert found["dispatcher"]["nni_parameters_generated_total"] >= 3
    assert found["dispatcher"]["nni_algorithm_ask_seconds_count"] >= 1
    assert found["trial-runner"]["nni_tasks_pulled_total"] >= 3
    assert found["trial-runner"]["nni_attempts_ended_total"] >= 3


def parent_of(span: Span, spans: dict[str, tuple[str, Span]]) -> str:
    """Return the name of a span's parent; empty: it has none."""
    return next(
        (name for name, (_, other) in spans.items() if other.span_id == span.parent_span_id), ""
    )


def test_each_trial_is_one_trace_through_all_services(
    shape: LocalShape, collector: Collector, done: str
) -> None:
    wanted = {
        "trial": ("nni-manager", ""),
        "trial.queued": ("nni-manager", "trial"),
        "parameters.generate": ("nni-dispatcher", "trial"),
        "attempt": ("nni-trial-runner", "trial"),
        "attempt.prepare": ("nni-trial-runner", "attempt"),
        "attempt.run": ("nni-trial-runner", "attempt"),
    }

    def complete() -> list[dict[str, tuple[str, Span]]]:
        traces = [spans for spans in collector.traces().values() if set(wanted) <= set(spans)]
        return traces if len(traces) == 3 else []

    for spans in until(complete, 60, "three whole traces"):
        found = {name: (spans[name][0], parent_of(spans[name][1], spans)) for name in wanted}
        assert found == wanted
        whole = spans["trial"][1]
        for name in wanted:
            part = spans[name][1]
            assert part.start_time_unix_nano >= whole.start_time_unix_nano
            # Both clocks are this machine's, cut to milliseconds.
            assert part.end_time_unix_nano <= whole.end_time_unix_nano + 50_000_000


def test_a_trial_goes_on_with_its_trace(shape: LocalShape, collector: Collector, done: str) -> None:
    folders = sorted((shape.root / done / "trials").iterdir())

    contexts = [(folder / "stdout").read_text().split()[1] for folder in folders]

    runs = {
        f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01"
        for _, span in collector.spans
        if span.name == "attempt.run"
    }
    assert len(set(contexts)) == 3
    assert set(contexts) <= runs


def test_log_lines_name_what_they_are_about(
    shape: LocalShape, collector: Collector, done: str
) -> None:
    by_service = {service: lines(shape, service) for service in SERVICES}

    assert all(line["service"] for found in by_service.values() for line in found)
    begun = [
        line
        for line in by_service["trial-runner"]
        if line["event"] == "attempt begins" and line["experiment"] == done
    ]
    assert len({line["trial"] for line in begun}) == 3
    assert {line["attempt"] for line in begun} == {1}
    assert {line["trace"] for line in begun} <= {trace.hex() for trace in collector.traces()}
    assert any(line.get("experiment") == done for line in by_service["dispatcher"])


def test_a_failure_is_explained(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, FAILING_TRIAL, maxTrialNumber=1)
    experiment = nnictl.create(config)
    nnictl.shape.wait_for(experiment, "DONE")
    (trial,) = nnictl.trials(experiment)

    text = nnictl("trial", "why", trial["trialJobId"]).stdout
    record = nnictl.json("trial", "why", trial["trialJobId"], experiment, "--json")

    assert "failed: its command ended with exit code 1" in text
    assert "no such data set" in text
    assert (record["verdict"], record["exitCode"]) == ("FAILED", 1)
    assert record["reasons"][0]["kind"] == "EXIT_CODE"
    assert "nnictl log trial --follow" in record["reasons"][0]["remedy"]
    url = f"{nnictl.shape.endpoint()['http']}/api/v1/nni/experiments/{experiment}"
    assert json.loads(get(f"{url}/trials/{trial['trialJobId']}/why")) == record
    assert json.loads(get(f"{url}/why"))["reasons"][0]["kind"] == "BUDGET"
    unknown = nnictl("trial", "why", "unknown", expect=1)
    assert "no experiment has a trial 'unknown'" in unknown.stderr


def test_a_trial_that_waits_for_a_gpu_says_so(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(
        tmp_path,
        PATIENT,
        maxTrialNumber=2,
        trialGpuNumber=1,
        trainingService={"platform": "local", "useActiveGpu": False},
    )
    experiment = nnictl.create(config)

    def waiting() -> list[dict[str, Any]]:
        records = [
            nnictl.json("trial", "why", trial["trialJobId"], experiment, "--json")
            for trial in nnictl.trials(experiment)
        ]
        return [
            record
            for record in records
            if record["verdict"] == "WAITS" and record["reasons"][0]["kind"] == "GPU"
        ]

    (record,) = until(waiting, 60, "a trial that waits for the GPU")
    text = nnictl("trial", "why", record["trialJobId"]).stdout

    assert "waiting for 1 GPU" in text
    assert "do:  free a GPU" in text
    nnictl("stop", experiment)


def test_output_is_followed_while_a_trial_runs(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, TALKING_TRIAL, maxTrialNumber=1)
    experiment = nnictl.create(config)
    trial = until(lambda: nnictl.trials(experiment), 60, "a trial")[0]["trialJobId"]
    following = nnictl.start("log", "trial", experiment, "--trial_id", trial, "--follow")

    assert following.stdout is not None
    assert following.stdout.readline() == "first line\n"
    nnictl("trial", "kill", experiment, "--trial_id", trial)

    with following.stdout:
        assert following.wait(60) == 0
    refused = nnictl("log", "trial", experiment, "--follow", expect=2)
    assert "--trial_id" in refused.stderr
