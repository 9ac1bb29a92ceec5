"""Appearance of the page: light and dark, wide and narrow, and its accessibility.

Screenshots go to the folder `NNI_SCREENSHOTS`, for review by a person.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from nni.compression.remote import RemoteJob
from nni.experiment.client import ManagerClient
from nni.experiment.local_shape import running_endpoint
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from tests.support.axe import violations
from tests.support.browser import Browser, Page
from tests.support.compression_job import job_of
from tests.support.finished_experiment import write_finished
from tests.support.page_experiment import Shown, browser, shown

__all__ = ["browser", "shown"]  # fixtures
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SCENES = (
    "overview", "budgets", "trials", "filter", "columns", "compare", "trial", "trial-log", "custom",
    "results", "parameters", "curves", "durations", "importance", "experiments",
    "configuration", "logs",
)  # fmt: skip
VIEWS = {
    "overview": "oview", "budgets": "oview", "experiments": "experiment",
    "configuration": "oview", "logs": "oview",
    "results": "charts", "parameters": "charts", "curves": "charts", "durations": "charts",
    "importance": "charts",
}  # fmt: skip
TABS = {
    "results": "Results", "parameters": "Hyper-parameters", "curves": "Intermediate results",
    "durations": "Durations", "importance": "Importance",
}  # fmt: skip


def show(page: Page, scene: str) -> None:
    """Open a scene in a newly opened view."""
    page.until("document.querySelector('main .card')")
    if scene in TABS:
        page.click("[role=tab]", TABS[scene])
        page.until("document.querySelector('[role=tabpanel] figure, .importance, .parallel')")
    elif scene in {"configuration", "logs"}:
        page.click("button", "More")
        page.click(".menu-item", "Configuration" if scene == "configuration" else "Logs of")
        page.until("document.querySelector('dialog pre')")
    elif scene == "budgets":
        page.click("button", "Change")
    elif scene != "experiments" and VIEWS.get(scene) is None:
        show_trials(page, scene)


def show_trials(page: Page, scene: str) -> None:
    page.until("document.querySelectorAll('.trials .t-row').length > 3")
    if scene in {"filter", "columns"}:
        page.click("button", scene.capitalize())
    if scene == "compare":
        page.click(".t-row input")
        page.click(".t-row:nth-child(2) input")
        page.click("button", "Compare")
        page.until("document.querySelector('dialog table')")
    if scene in {"trial", "trial-log", "custom"}:
        page.click(".t-row a")
        page.until_text("Copy as Python", "dialog")
    if scene == "trial-log":
        page.click("dialog [role=tab]", "Logs")
    if scene == "custom":
        page.click("dialog button", "Edit and run again")


@pytest.mark.parametrize("scene", SCENES)
def test_scene_is_accessible_in_light_and_dark_without_browser_errors(
    browser: Browser, shown: Shown, tmp_path: Path, scene: str
) -> None:
    page = shown.visit(browser, VIEWS.get(scene, "detail"), width=1360, height=900)
    show(page, scene)
    folder = Path(os.environ.get("NNI_SCREENSHOTS", tmp_path))

    found = []
    for theme in ("light", "dark"):
        page.prefer(theme)
        page.until(f"document.documentElement.dataset.theme === '{theme}'")
        page.screenshot(folder / f"{scene}-{theme}.png")
        found += [f"{theme}: {one}" for one in violations(page)]

    assert not found, "\n".join(found)
    assert page.problems() == []
    assert (folder / f"{scene}-light.png").read_bytes() != (
        folder / f"{scene}-dark.png"
    ).read_bytes()


@pytest.mark.parametrize("width", [420, 1024])
@pytest.mark.parametrize("view", ["oview", "detail", "charts", "experiment"])
def test_narrow_window_needs_no_sideways_scrolling(
    browser: Browser, shown: Shown, view: str, width: int
) -> None:
    page = shown.visit(browser, view, width=width, height=768)
    page.until("document.querySelector('main .card')")

    assert page.run("document.documentElement.scrollWidth") <= width


def test_theme_is_switched_and_kept(browser: Browser, shown: Shown) -> None:
    page = shown.visit(browser)
    page.until_text("Best result")

    page.click("button[aria-label='Switch to dark']")
    page.until("document.documentElement.dataset.theme === 'dark'")
    page.open(shown.address("detail"))
    page.until("document.querySelector('main .card')")

    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.run("document.querySelector(\"button[aria-label='Switch to dark']\")") is None


def test_long_experiment_is_opened_for_reading_with_few_rows_in_the_document(
    browser: Browser, shown: Shown, tmp_path: Path
) -> None:
    write_finished(tmp_path, "bigone00", 3_000)
    where = str(tmp_path / "bigone00")
    port = str(shown.shape.free_port())
    shown.shape.nnictl("view", "bigone00", "--experiment_dir", where, "--port", port)
    page = browser.new_page()
    page.open(f"http://127.0.0.1:{port}/detail")
    page.until_text("3,000 trials", timeout_s=60)
    page.wheel(600, 500, 50_000)
    page.until("document.querySelector('.table-box').scrollTop > 40000")

    assert page.run("document.querySelectorAll('[role=row]').length") <= 200
    assert "read only" in page.text("header")
    button = "[...document.querySelectorAll('button')].find((b) => b.innerText === 'New trial')"
    assert page.run(f"{button}.disabled") is True
    assert page.problems() == []


STEP: Final = """\
import nni

step = nni.get_next_parameter()["step"]
layers = {f"layer{number}.conv.weight": min(1, step * number / 12) for number in range(1, 5)}
nni.report_final_result({
    "default": 0.9 - step / 50, "parameters": 25_000 // step, "flops": 1_000_000 // step,
    "latency_before_ms": 8.5, "latency_ms": 3.25, "error": 2.5e-7,
    "sparsity": layers if step < 3 else {},
})
"""


def test_compression_job_is_shown_by_its_steps_and_layers(
    browser: Browser, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "step.py").write_text(STEP)
    monkeypatch.setenv("NNI_HOME", str(shown.shape.home))
    config = config_pb2.ExperimentConfig(
        experiment_name="halved",
        trial_command="python3 step.py",
        trial_code_directory=str(tmp_path),
    )
    config.compression.job.CopyFrom(to_value(job_of(2)))
    with ManagerClient(running_endpoint()) as client:
        made = client.create(
            config, port=0, url_prefix="", environment={}, interpreter=sys.executable
        ).experiment
        done = RemoteJob(made.id, client).wait()
    assert done.complete, done
    page = replace(shown, experiment=made.id).visit(browser, "oview", width=1360, height=900)
    page.until_text("Sparsity of each layer")
    page.until_text("layer4.conv.weight")

    found = []
    for theme in ("light", "dark"):
        page.prefer(theme)
        page.until(f"document.documentElement.dataset.theme === '{theme}'")
        page.screenshot(
            Path(os.environ.get("NNI_SCREENSHOTS", tmp_path)) / f"compression-{theme}.png"
        )
        found += violations(page)

    assert found == []
    assert page.problems() == []
    steps = page.text("section[aria-labelledby=steps]")
    assert "prune" in steps
    assert "41.7 %" in steps
    assert "3.25 ms" in page.text("section[aria-labelledby=outcome]")
    assert "Best result" not in page.text()
