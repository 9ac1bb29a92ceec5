"""The page with several objectives, a limit, early stops, failures, NaN, null and lists."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from tests.support import wait
from tests.support.axe import violations
from tests.support.browser import Browser, Page
from tests.support.experiments import write_experiment
from tests.support.local_shape import running_shape
from tests.support.page_experiment import Shown, browser
from tests.support.servers import require_binary
from tests.support.varied_experiment import write_varied

__all__ = ["browser"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SEARCH = "input[aria-label='Search trials']"
ROWS = "[...document.querySelectorAll('.trials .t-row')].length"
NUMBERS = (
    "[...document.querySelectorAll('.trials .t-row')].map((row) => +row.children[1].innerText)"
)
SVG: Final = "{http://www.w3.org/2000/svg}"
IMAGE_BYTES = 5_000
"""An image without lines and names is smaller."""
KINDS = (
    "result beyond a limit (2)",
    "best intermediate result of a trial without a result (31)",
    "ended without a value (3)",
)


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The experiment, opened for reading."""
    require_binary("nats-server")
    folder = tmp_path_factory.mktemp("varied")
    write_varied(folder, "varied00")
    home = folder / "home"
    home.mkdir()
    with running_shape(home) as shape:
        port = str(shape.free_port())
        where = str(folder / "varied00")
        shape.nnictl("view", "varied00", "--experiment_dir", where, "--port", port)
        yield Shown(shape, "varied00")


def check(page: Page, name: str, folder: Path) -> list[str]:
    """Save a screenshot in both themes; return what is not accessible."""
    found = []
    for theme in ("light", "dark"):
        page.prefer(theme)
        page.until(f"document.documentElement.dataset.theme === '{theme}'")
        page.screenshot(folder / f"{name}-{theme}.png")
        found += [f"{name}, {theme}: {one}" for one in violations(page)]
    return found


def saved(page: Page, button: str) -> bytes:
    """Click a button that saves a file; return its content."""
    page.run("delete window.saved")
    page.run("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }")
    page.click("button", button)
    page.until("window.saved instanceof Blob")
    code = page.run(
        "window.saved.arrayBuffer().then((data) =>"
        " btoa(Array.from(new Uint8Array(data), (one) => String.fromCharCode(one)).join('')))"
    )
    return base64.b64decode(code)


def test_trials_without_a_result_and_beyond_a_limit_are_shown_for_what_they_are(
    browser: Browser, varied: Shown, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("NNI_SCREENSHOTS", tmp_path))
    page = varied.visit(browser, "oview", width=1400, height=1200)
    page.until_text(KINDS[1])
    page.until_text("beyond a limit", "section[aria-labelledby=front-trials]")

    overview = page.text()
    found = check(page, "objectives-overview", folder)
    page.open(varied.address("charts"))
    page.click("[role=tab]", "Hyper-parameters")
    page.until_text("without a value, or beyond a limit (5)")
    found += check(page, "objectives-parameters", folder)
    image = saved(page, "PNG")
    (folder / "saved-parameters.png").write_bytes(image)
    page.open(varied.address("detail"))
    page.until(f"{ROWS} > 3")
    page.fill(SEARCH, "units=null C=")
    page.until(f"{ROWS} === 4")
    page.fill(SEARCH, "#13")
    page.until(f"{ROWS} === 1")
    nan = page.text(".trials .t-row")
    table = saved(page, "CSV").decode()
    page.fill(SEARCH, '"best intermediate">0.55 #0..30')
    page.until(f"{ROWS} > 1")

    assert all(kind in overview for kind in KINDS), overview
    assert "limit 40 of latency" in overview
    assert "15 results: 12 complete and within the limits, 2 beyond a limit" in overview
    assert "svm: 0 … 10; mlp: 50 … 90" in overview
    assert "null, [8,16], [32], 64" in overview
    assert "NaN" in nan
    assert image.startswith(b"\x89PNG")
    assert len(image) > IMAGE_BYTES
    assert [line.split(",")[0] for line in table.splitlines()] == ["No.", "13"]
    assert "{" not in nan
    assert found == []
    assert page.problems() == []


def test_address_holds_search_order_selection_and_comparison_and_back_leads_out(
    browser: Browser, varied: Shown
) -> None:
    page = varied.visit(browser, "detail", width=390, height=800)
    page.until(f"{ROWS} > 3")
    page.click("button", "Columns")
    page.until("document.querySelector('.menu-panel')")
    panel = page.run(
        "Object.values(document.querySelector('.menu-panel').getBoundingClientRect().toJSON())"
    )
    page.press("Escape")
    page.fill(SEARCH, "succeeded result>0.7")
    page.until("location.search.includes('q=succeeded')")
    page.click("[role=columnheader] button", "accuracy")
    page.until("location.search.includes('sort=-m%3Aaccuracy')")
    order = page.run(NUMBERS)
    page.click(".t-row input")
    page.click(".t-row:nth-child(2) input")
    page.click("button", "Compare")
    page.until_text("Compare 2 trials", "dialog")
    address = page.run("location.href")

    page.open(address)
    page.until_text("Compare 2 trials", "dialog")
    page.until(f"{ROWS} === {len(order)}")
    again = page.run(NUMBERS)
    page.press("Escape")
    page.until("!document.querySelector('dialog')")
    page.click(".t-row a")
    page.until_text("Copy as Python", "dialog")
    page.click("dialog button[aria-label='Next trial']")
    page.until_text(f"Trial {order[1]}", "dialog")
    page.run("history.back()")
    page.until("!document.querySelector('dialog')")

    x, y, width, height = panel[:4]
    assert 0 <= x < x + width <= 390
    assert 0 <= y < y + height <= 800
    assert again == order
    assert page.run("location.search.includes('q=succeeded')")
    assert page.problems() == []


TABS = {
    "Slices": "document.querySelectorAll('.slices canvas').length === 4",
    "Scatter": "document.querySelector('.tab-panel .u-over')",
    "Timeline": "document.querySelector('.timeline canvas')?.width > 1000",
}
HEADERS = (
    "[...document.querySelectorAll('.t-head [role=columnheader]')].map((one) => one.innerText)"
)
PINNED = """(() => {
  const box = document.querySelector('.table-box');
  box.scrollLeft = 300;
  const cell = document.querySelector('.t-row .pinned');
  return [box.scrollLeft, cell.getBoundingClientRect().left - box.getBoundingClientRect().left];
})()"""


def test_slices_scatter_and_timeline_are_accessible_addressed_and_saved_as_svg(
    browser: Browser, varied: Shown, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("NNI_SCREENSHOTS", tmp_path))
    page = varied.visit(browser, "charts", width=1400, height=900)
    found = []
    texts = {}
    for tab, ready in TABS.items():
        page.click("[role=tab]", tab)
        page.until(ready)
        found += check(page, f"objectives-{tab.lower()}", folder)
        image = saved(page, "SVG")
        (folder / f"saved-{tab.lower()}.svg").write_bytes(image)
        texts[tab] = [one.text for one in ElementTree.fromstring(image).iter(f"{SVG}text")]
    page.open(varied.address("oview"))
    page.until("document.querySelector('[data-picture]')")
    front = ElementTree.fromstring(saved(page, "SVG"))
    page.open(varied.address("charts", chart="scatter", x="p:units", y="number"))
    page.until("document.querySelector('.tab-panel .u-over')")
    chosen = page.run("[...document.querySelectorAll('.chart .tools select')].map((s) => s.value)")

    assert {"lr (logarithmic)", "units", "model", "model/C"} <= set(texts["Slices"])
    assert "svm" in texts["Slices"]
    assert "accuracy" in texts["Scatter"]
    assert "r1" in texts["Timeline"]
    assert "accuracy" in [one.text for one in front.iter(f"{SVG}text")]
    assert chosen == ["p:units", "number"]
    assert found == []
    assert page.problems() == []


def test_columns_are_searched_moved_and_pinned_and_all_matching_trials_selected(
    browser: Browser, varied: Shown
) -> None:
    page = varied.visit(browser, "detail", width=700, height=800)
    page.until(f"{ROWS} > 3")
    page.click("button", "Columns")
    page.fill("input[aria-label='Search columns']", "created")
    page.click(".choice label", "Created")
    page.fill("input[aria-label='Search columns']", "trial")
    page.click("button[aria-label='Move Trial forward']")
    page.until("location.search.includes('cols=id%2Cnumber')")
    page.press("Escape")
    page.fill(SEARCH, "failed")
    page.until(f"{ROWS} === 6")
    page.click("input[aria-label='Select all 6 matching trials']")
    page.until_text("6 trials selected")

    headers = page.run(HEADERS)
    scrolled, left = page.run(PINNED)

    assert headers[1:3] == ["Trial", "No."]
    assert headers[-1] == "Created"
    assert scrolled == 300
    assert abs(left) < 2
    assert page.problems() == []


REPORTS = 150
REPORTING = f"""\
import signal
import time

import nni

slope = nni.get_next_parameter()["x"]
for step in range({REPORTS}):
    nni.report_intermediate_result(step * slope)
    time.sleep(0.02)
signal.pause()
"""
MOST_REQUESTS = 20
"""Both paces admit 8 requests at once, for trials and, by three, for the status; then few."""


def test_live_results_keep_the_zoom_and_need_few_requests(
    browser: Browser, varied: Shown, tmp_path: Path
) -> None:
    config = write_experiment(tmp_path / "code", REPORTING, maxTrialNumber=2)
    live = Shown(varied.shape, varied.shape.create(config))
    page = live.visit(browser, "charts", width=1400, height=800)
    page.click("[role=tab]", "Intermediate results")
    page.until("document.querySelector('.u-over')")
    page.until_text("2 trials")
    for kind, x, y in (
        ("mousePressed", 500, 300), ("mouseMoved", 700, 500), ("mouseReleased", 700, 500),
    ):  # fmt: skip
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    page.until("document.querySelector('.plot-reset')")
    browser.poll()
    before = len(browser.events)

    counts = wait.until(
        lambda: [n for n in live.rest("trial-jobs") if n["intermediateCount"] == REPORTS], 60
    )
    page.until("[...document.querySelectorAll('.plot-canvas')][0].ariaLabel.includes('150 interm')")
    browser.poll()
    requests = [
        one for one in browser.events[before:] if one["method"] == "Network.requestWillBeSent"
    ]
    varied.shape.nnictl("stop", live.experiment)

    assert counts
    assert len(requests) <= MOST_REQUESTS, [one["params"]["request"]["url"] for one in requests]
    assert page.run("document.querySelector('.plot-reset') !== null")
    page.until_text("stopped", "header")
    assert page.problems() == []
