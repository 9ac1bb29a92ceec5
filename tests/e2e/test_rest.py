"""REST over the real services: what it shows is what ran, and nothing breaks it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc_manager.web.listeners.route_table import ROUTES
from tests.support.local_shape import LocalShape, local_shape

__all__ = ["local_shape"]  # a fixture

API = "/api/v1/nni"
METRICS = {0: "nan", 1: "inf", 2: '{"default": 1, "loss": 2}', 3: '"words"'}
TRIAL = """\
import json, nni
metrics = %r
nni.get_next_parameter()
value = metrics[nni.get_sequence_id()]
value = float(value) if value in ("nan", "inf") else json.loads(value)
nni.report_intermediate_result(value)
nni.report_final_result(value)
print("said it")
"""
CONFIG = """\
experimentName: metrics of all kinds
searchSpace: {x: {_type: uniform, _value: [0, 1]}}
trialCommand: python3 trial.py
trialConcurrency: 1
maxTrialNumber: 4
tuner: {name: Random, classArgs: {seed: 0}}
trainingService: {platform: local}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "trial.py").write_text(TRIAL % METRICS, "utf-8")
    (folder / "config.yml").write_text(CONFIG, "utf-8")
    return folder / "config.yml"


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=20, trust_env=False) as made:
        yield made


def base_of(shape: LocalShape, experiment: str) -> str:
    endpoint = shape.endpoint()
    assert endpoint is not None
    return f"{endpoint['http']}{API}/experiments/{experiment}"


def refuse_bare_words(word: str) -> object:
    raise AssertionError(f"{word} is no JSON that a browser reads")


@pytest.mark.claim("platform", 26)
@pytest.mark.claim("hpo", 8)
@pytest.mark.timeout(240)
def test_metrics_of_all_kinds_arrive_in_order_and_as_valid_json(
    local_shape: LocalShape, config: Path, client: httpx.Client
) -> None:
    experiment = local_shape.create(config)
    local_shape.wait_for(experiment, "DONE")
    base = base_of(local_shape, experiment)

    def get(path: str) -> Any:
        return json.loads(client.get(f"{base}/{path}").text, parse_constant=refuse_bare_words)

    trials = get("trial-jobs")
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 4
    values = [trial["finalMetricData"][0]["data"] for trial in trials]
    assert values == ["NaN", "Infinity", {"default": 1, "loss": 2}, "words"]
    assert len(get("metric-data")) == 8
    assert get("job-statistics") == {"SUCCEEDED": 4}
    identity = trials[0]["trialJobId"]
    assert client.get(f"{base}/trial-file/{identity}/trial.log").text.count("said it") == 1
    assert experiment not in client.get(f"{base}/logs/dispatcher.log").headers
    events = client.get(f"{base}/events?follow=false").text
    assert events.count("event: trial_ended\n") == 4


@pytest.mark.claim("platform", 31)
@pytest.mark.timeout(240)
def test_viewed_experiment_can_be_read_but_not_changed(
    local_shape: LocalShape, config: Path, client: httpx.Client
) -> None:
    experiment = local_shape.create(config)
    local_shape.wait_for(experiment, "DONE")
    local_shape.nnictl("stop", experiment)
    local_shape.nnictl("view", experiment, "--port", str(local_shape.free_port()))
    base = base_of(local_shape, experiment)
    endpoint = local_shape.endpoint()
    assert endpoint is not None
    token = {"Authorization": f"Bearer {endpoint['token']}"}

    status = client.get(f"{base}/check-status").json()["status"]
    trials = client.get(f"{base}/trial-jobs").json()
    changed = client.put(
        f"{base}/experiment?update_type=MAX_TRIAL_NUM",
        json={"params": {"maxTrialNumber": 9}},
        headers=token,
    )
    killed = client.delete(f"{base}/trial-jobs/{trials[0]['trialJobId']}", headers=token)

    assert status == "VIEWED"
    assert len(trials) == 4
    assert [changed.status_code, killed.status_code] == [409, 409]


@pytest.mark.timeout(240)
def test_nonsense_never_breaks_the_real_manager(
    local_shape: LocalShape, config: Path, client: httpx.Client
) -> None:
    experiment = local_shape.create(config)
    local_shape.wait_for(experiment, "DONE")
    endpoint = local_shape.endpoint()
    assert endpoint is not None
    client.headers["Authorization"] = f"Bearer {endpoint['token']}"
    trial = client.get(f"{base_of(local_shape, experiment)}/trial-jobs").json()[0]["trialJobId"]
    bodies = [
        b"{}",
        b"[]",
        b"3",
        b'"x"',
        b'[{"parameter": 3}]',
        b'{"params": {"trialConcurrency": 0}}',
    ]
    queries = ["limit=3&cursor=zzz", "cursor=-1", "after=999999999-0", "offset=99999999", "ids=x,y",
               "update_type=SEARCH_SPACE", "update_type=TRIAL_CONCURRENCY"]  # fmt: skip

    broken = []
    for route in ROUTES:
        for url in addresses(route.path, [trial, "unknown", "..", "0"], experiment):
            for query, body in itertools.product(queries, bodies if route.body else [b""]):
                answer = client.request(
                    route.method,
                    f"{endpoint['http']}{url}?follow=false&{query}",
                    content=body,
                    headers={"Content-Type": "application/json"},
                )
                if answer.status_code >= 500:
                    broken.append((answer.request.url, answer.text))

    assert broken == []
    assert client.get(f"{base_of(local_shape, experiment)}/check-status").status_code == 200


def addresses(path: str, words: list[str], experiment: str) -> Iterator[str]:
    """Yield a path with each word in all of its places, of this, of no, of another experiment."""
    for word in words if "{" in path else words[:1]:
        filled = re.sub(r"{\w+}", word, path)
        for root in (f"{API}/experiments/{experiment}", f"{API}/experiments/unknown0", API):
            yield root + filled


@pytest.mark.timeout(240)
def test_point_that_may_not_be_tried_first_is_refused_at_creation(
    local_shape: LocalShape, tmp_path: Path, client: httpx.Client
) -> None:
    local_shape.start()
    endpoint = local_shape.endpoint()
    space = {"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": ["x <= 0.5"]}
    wanted = {
        "searchSpace": space,
        "trialCommand": "true",
        "trialCodeDirectory": str(tmp_path),
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
        "tuner": {"name": "TPE"},
        "search": {"enqueue": [{"x": 0.25}, {"x": 0.75}]},
        "trainingService": {"platform": "local"},
    }

    refused = client.post(
        f"{endpoint['http']}{API}/experiment",
        json=wanted,
        headers={"Authorization": f"Bearer {endpoint['token']}"},
    )

    assert refused.status_code == 400
    content = refused.json()
    assert "search.enqueue[1] must keep the constraint x <= 0.5 of the search space" in str(content)
    assert "change the configuration, or remove it" in str(content)
    experiments = client.get(f"{endpoint['http']}{API}/experiments-info")
    assert experiments.json() == []
