"""Routes of TensorBoard processes, with a sleeping program in place of TensorBoard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc_manager.web.tensorboards import FIRST_PORT
from tests.unit.services.manager.web.conftest import API, Site


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for number in (0, 1):
        (tmp_path / "trials" / f"tria{number}" / "tensorboard").mkdir(parents=True)
    return tmp_path


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_started_task_is_listed_and_ended(site: Site, written: Path) -> None:
    started = await site.client.post(f"{API}/tensorboard", json={"trials": "tria0,tria1"})
    task = started.json()

    assert started.status_code == 201
    assert task["trialJobIdList"] == ["tria0", "tria1"]
    assert task["trialLogDirectoryList"][0] == str(written / "trials" / "tria0" / "tensorboard")
    assert task["port"] >= FIRST_PORT
    assert (await site.anonymous.get(f"{API}/tensorboard-tasks")).json() == [task]

    ended = await site.client.delete(f"{API}/tensorboard-tasks/{task['id']}")

    assert ended.json()["status"] == "STOPPED"
    assert not alive(task["pid"])
    assert (await site.anonymous.get(f"{API}/tensorboard-tasks")).json() == []


@pytest.mark.usefixtures("written")
async def test_same_selection_gets_the_same_process(site: Site) -> None:
    first = await site.client.post(f"{API}/tensorboard", json={"trials": ["tria0", "tria1"]})
    again = await site.client.post(f"{API}/tensorboard", json={"trials": ["tria1", "tria0"]})

    assert first.json()["pid"] == again.json()["pid"]


@pytest.mark.claim("platform", 73)
@pytest.mark.usefixtures("written")
async def test_stop_all_ends_every_process(site: Site) -> None:
    pids = [
        (await site.client.post(f"{API}/tensorboard", json={"trials": [name]})).json()["pid"]
        for name in ("tria0", "tria1")
    ]

    await site.client.delete(f"{API}/tensorboard-tasks")

    assert [alive(pid) for pid in pids] == [False, False]


@pytest.mark.parametrize("trials", [None, [], [3], "", {"a": 1}, ["x"] * 101])
async def test_selection_must_name_trials(site: Site, trials: object) -> None:
    answer = await site.client.post(f"{API}/tensorboard", json={"trials": trials})

    assert answer.status_code == 400


async def test_trial_without_event_files_is_named(site: Site) -> None:
    answer = await site.client.post(f"{API}/tensorboard", json={"trials": ["tria2"]})

    assert answer.status_code == 409
    assert "tria2" in answer.json()["error"]
