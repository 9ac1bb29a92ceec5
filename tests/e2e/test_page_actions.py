"""The page's actions on experiments, remarks, machines, and logs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni_proto.runner.v1 import pool_pb2
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.subjects import pool_state_subject
from tests.support import wait
from tests.support.axe import violations
from tests.support.browser import Browser, Page
from tests.support.experiments import write_experiment
from tests.support.local_shape import LocalShape, running_shape
from tests.support.page_experiment import Shown, browser
from tests.support.servers import require_binary

__all__ = ["browser"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SCRIPT = """\
import nni

nni.report_final_result(nni.get_next_parameter()["x"])
"""
WAITING = """\
import signal

import nni

for number in range(20_000):
    print(f"line {number} of a long output", flush=number == 19_999)
nni.report_intermediate_result(nni.get_next_parameter()["x"])
signal.pause()
"""
SPACE = {"y": {"_type": "randint", "_value": [0, 7]}}


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalShape]:
    """Running services."""
    require_binary("nats-server")
    with running_shape(tmp_path_factory.mktemp("actions")) as made:
        yield made


def act(page: Page, action: str) -> None:
    """Choose an action of the open dialog, and confirm it."""
    page.click("dialog .actions button:enabled", action)
    page.until_text(f"{action}?", "dialog")
    page.click("dialog .row.end button:enabled", action)


def settle(page: Page) -> None:
    """Wait until no dialog is open; dismiss the message, which would move the page as it goes."""
    page.until("!document.querySelector('dialog')")
    page.until(
        "!document.querySelector('.notice.done button')"
        " || void document.querySelector('.notice.done button').click()"
    )


def change_space(page: Page, folder: Path) -> list[str]:
    """Replace the search space, after a try with broken JSON; return what is not accessible."""
    page.click("section[aria-labelledby=space] button:enabled", "Change")
    page.fill("dialog textarea", "{x: 1}")
    page.click("dialog button:enabled", "Save")
    page.until_text("must be JSON", "dialog [role=alert]")
    page.screenshot(folder / "space-editor.png")
    found = violations(page)
    page.fill("dialog textarea", json.dumps(SPACE))
    page.click("dialog button:enabled", "Save")
    settle(page)
    return found


def remark(page: Page, shown: Shown, folder: Path) -> list[str]:
    """Star the experiment, tag a trial; return what is not accessible."""
    page.click("button[aria-label='Star the experiment']:enabled")
    page.until("document.querySelector(\"[aria-label='Star the experiment'][aria-pressed=true]\")")
    page.open(shown.address("detail", trial=shown.rest("trial-jobs")[1]["trialJobId"]))
    page.click("dialog .remarks button:enabled", "Note, tags")
    page.fill("dialog .remarks input", "paper, look again, paper")
    page.fill("dialog .remarks textarea", "An outlier?")
    page.click("dialog .remarks button:enabled", "Save")
    page.until_text("An outlier?", "dialog")
    page.screenshot(folder / "remarks.png")
    found = violations(page)
    page.press("Escape")
    page.fill("input[aria-label='Search trials']", "tag=paper")
    page.until("document.querySelectorAll('.trials .t-row').length === 1")
    page.until_text("paper, look again", ".trials")
    page.open(shown.address())
    return found


def compare(page: Page, experiments: list[str], folder: Path) -> list[str]:
    """Compare experiments in one chart, on a phone; return what is not accessible."""
    for one in experiments:
        page.click(f"input[aria-label='Select experiment {one}']")
    page.click(".selection button", "Compare")
    page.until("document.querySelector('dialog canvas')")
    page.until_text("Best is", "dialog")
    page.screenshot(folder / "experiments-phone.png")
    found = violations(page)
    page.press("Escape")
    page.until("!document.querySelector('dialog')")
    page.click(".selection button", "Clear")
    return found


def test_an_experiment_is_changed_stopped_resumed_repeated_and_deleted_from_the_page(
    browser: Browser, shape: LocalShape, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("NNI_SCREENSHOTS", tmp_path))
    config = write_experiment(tmp_path / "code", SCRIPT, experimentName="actions", maxTrialNumber=2)
    shown = Shown(shape, shape.create(config))
    shape.wait_for(shown.experiment, "DONE")
    page = shown.visit(browser, "oview", width=1400, height=900)
    page.until_text("Search space")
    found = change_space(page, folder)
    found += remark(page, shown, folder)
    space = shown.rest("experiment")["params"]["searchSpace"]

    page.click("section[aria-labelledby=about] button:enabled", "Actions")
    page.until_text("stop it first", "dialog")
    page.screenshot(folder / "actions.png")
    found += violations(page)
    act(page, "Stop")
    settle(page)
    page.until_text("stopped", "header")
    page.click("section[aria-labelledby=about] button:enabled", "Actions")
    act(page, "Run again")
    page.until(f"!location.search.includes('{shown.experiment}')")
    page.until_text("actions", "header")
    again = page.run("new URLSearchParams(location.search).get('id')")
    shape.wait_for(again, "ERROR", "DONE")
    row = f"button[aria-label='Actions on experiment {shown.experiment}']"
    page.resize(390, 800)
    page.open(f"{shape.endpoint()['http']}/experiment")
    page.until_text("2 experiments")
    page.until_text("★")
    found += compare(page, [shown.experiment, again], folder)
    page.click(row)
    act(page, "Resume")
    settle(page)
    resumed = shown.rest("check-status")["status"]
    page.click(row)
    page.screenshot(folder / "actions-phone.png")
    found += violations(page)
    act(page, "Stop")
    settle(page)
    page.click(row)
    act(page, "Delete")
    page.until_text("1 experiment")

    assert space == SPACE
    assert resumed != "STOPPED"
    assert [one["id"] for one in shown.installation("experiments-info")] == [again]
    assert found == []
    assert page.problems() == []


def publish_pool(shape: LocalShape) -> None:
    """Publish the state of a pool as a fleet would: an agent waits, and why no other starts."""
    state = pool_pb2.PoolState(pool="lab", reason="QOSMaxJobsPerUser", remedy="ask for fewer jobs")
    state.agents.add(
        name="lab-1",
        platform="slurm",
        state=pool_pb2.POOL_AGENT_STATE_PENDING,
        slots=4,
        reason="Priority",
    )
    settings = NatsSettings(
        shape.endpoint()["nats"],
        user="fleet",
        password=shape.bus_password("fleet"),
        owns_streams=False,
    )

    async def publish() -> None:
        async with NatsBus(settings) as bus:
            await bus.last_values.publish(pool_state_subject("lab"), state.SerializeToString())

    asyncio.run(publish())


def wait_printed(shown: Shown) -> None:
    """Wait until the only trial has printed all its lines, so that its log grows no more."""
    wait.until(lambda: shown.rest("metric-data"), 150, "a metric")
    [trial] = shown.rest("trial-jobs")
    path = f"trial-file/{trial['trialJobId']}/stdout/search?text=line+19999+of"
    wait.until(lambda: shown.rest(path)["lines"], 60, "the last line")


def search_log(page: Page, folder: Path) -> list[str]:
    """Search the log of the open trial, of which the end is shown; return what is inaccessible."""
    page.click("dialog [role=tab]", "Logs")
    page.click("dialog [role=tab]", "stdout")
    page.until_text("line 19999 of", "dialog pre.log-text")
    assert "line 0 of" not in page.text("dialog pre.log-text")
    page.click("dialog button:enabled", "Earlier lines")
    page.until("document.querySelector('dialog pre.log-text').textContent.length > 300000")
    page.fill("dialog .log input[type=search]", "LINE 1234 OF")
    page.click("dialog .log button:enabled", "Search the whole log")
    page.until_text("1 line in the whole log", "dialog .found")
    page.screenshot(folder / "log.png")
    found = violations(page)
    page.click("dialog .found button:enabled")
    page.until("document.querySelector('dialog pre.log-text').textContent.startsWith('line 1234 ')")
    page.click("dialog button:enabled", "End of the log")
    page.until_text("line 19999 of", "dialog pre.log-text")
    return found


def show_use(page: Page, folder: Path) -> list[str]:
    """Show the use of the open trial, which runs; return what is inaccessible."""
    page.resize(1400, 900)
    page.click("dialog [role=tab]", "CPU and memory")
    page.until("document.querySelectorAll('dialog section[aria-label] canvas').length === 2")
    assert " in the last sample" in page.text("dialog")
    page.screenshot(folder / "use.png")
    return violations(page)


def test_machines_show_agents_their_trials_with_logs_and_why_a_pool_does_not_grow(
    browser: Browser, shape: LocalShape, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("NNI_SCREENSHOTS", tmp_path))
    config = write_experiment(tmp_path / "code", WAITING, maxTrialNumber=1)
    shown = Shown(shape, shape.create(config))
    publish_pool(shape)
    wait_printed(shown)
    page = shown.visit(browser, "machines", width=1400, height=700)
    page.until_text("QOSMaxJobsPerUser")
    page.until_text("2 agents")
    page.until("document.querySelector('.trials a.held')")
    text = page.text()
    page.screenshot(folder / "machines.png")
    found = violations(page)
    page.resize(390, 800)
    page.screenshot(folder / "machines-phone.png")
    found += violations(page)
    wide = page.run("document.documentElement.scrollWidth")
    page.click(".trials a.held")
    page.until_text("Agent", "dialog")
    page.until_text(" on ", "dialog .two")
    found += search_log(page, folder)
    found += show_use(page, folder)
    page.click("dialog [role=tab]", "Summary")
    page.until("document.querySelector('dialog .two dd a')")
    page.open(page.run("document.querySelector('dialog .two dd a').href"))
    page.until("document.querySelectorAll('.trials .t-row').length === 1")
    shape.nnictl("stop", shown.experiment)

    assert "ask for fewer jobs" in text
    assert "1 pending" in text
    assert wide <= 390
    assert found == []
    assert page.problems() == []
