"""The page on a neural architecture search: choices, best architectures, Pareto front.

Screenshots go to the folder `NNI_SCREENSHOTS`, for review by a person.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import nni
from nni.nas.experiment import NasExperimentConfig
from nni.nas.experiment.platform_trials import ManagerTrialPlatform
from tests.support.axe import violations
from tests.support.browser import Browser
from tests.support.local_shape import LocalShape, running_shape
from tests.support.page_experiment import Shown, browser
from tests.support.servers import require_binary

__all__ = ["browser"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

WIDTHS: Final = (8, 16, 32)
SPACE: Final = {
    "width": {"_type": "choice", "_value": list(WIDTHS), "kind": "value"},
    "block": {
        "_type": "choice",
        "_value": ["conv", "skip"],
        "kind": "layer",
        "candidates": ["Sequential(Conv2d, ReLU)", "Identity()"],
    },
    "kernel": {
        "_type": "choice",
        "_value": [3, 5],
        "kind": "value",
        "inside": {"label": "block", "value": "conv"},
    },
    "inputs": {"_type": "subset", "_value": [0, 1, 2], "kind": "inputs", "chosen": 2},
    "rate": {"_type": "loguniform", "_value": [0.001, 0.1], "kind": "number"},
}
MODEL: Final = """\
import nni

sample = nni.get_next_parameter()["sample"]
accuracy = 0.5 + sample["width"] / 100 + (sample["block"] == "conv") / 10
latency = sample["width"] * (3 if sample["block"] == "conv" else 1)
nni.report_final_result({"default": accuracy, "latency": latency})
"""


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalShape]:
    """Installation for the tests of this module."""
    require_binary("nats-server")
    with running_shape(tmp_path_factory.mktemp("architectures")) as made:
        yield made


@pytest.fixture(scope="module")
def search(shape: LocalShape) -> Iterator[Shown]:
    """A search of six models, all of them evaluated."""
    code = shape.folder / "code"
    code.mkdir()
    (code / "model.py").write_text(MODEL)
    config = NasExperimentConfig(
        "ts", "simplified", "local", experiment_name="search", trial_concurrency=2,
        max_trial_number=6, trial_code_directory=code,
    )  # fmt: skip
    config.trial_command = "python3 model.py"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "NNI_HOME", "PATH"):
            patch.setenv(name, shape.environment[name])
        platform = ManagerTrialPlatform(config, search_space=SPACE)
        experiment = platform.open(None)
        for number, (width, block) in enumerate(itertools.product(WIDTHS, ("conv", "skip"))):
            sample = {
                "width": width, "block": block, "kernel": 3, "inputs": [0, 1 + number % 2],
                "rate": 0.01 * (number + 1),
            }  # fmt: skip
            parameters = {"sample": sample, "model": {"x": [1]}, "nni_version": nni.__version__}
            platform.add(f"model-{number}", parameters)
        shape.wait_for(experiment, "DONE")
        yield Shown(shape, experiment)
        platform.close()


def test_space_is_shown_with_the_share_of_each_candidate(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures", width=1360, height=1500)
    page.until_text("5 choices, 6 evaluated models")

    choices = page.text("section[aria-labelledby=choices]")

    assert "conv: Sequential(Conv2d, ReLU)" in choices
    assert "if block is conv" in choices
    assert "2 of 3" in choices
    assert "33 % (2 of 6)" in choices  # a width, among all
    assert "100 % (3 of 3)" in choices  # the kernel, among the models with a convolution
    assert "0.01 … 0.06" in choices
    assert page.problems() == []


def test_best_architectures_stand_side_by_side(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures")
    page.until_text("Largest result first")

    rows = page.run(
        "[...document.querySelectorAll('section[aria-labelledby=best-architectures] tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText).join(' | '))"
    )

    assert "result | 0.92 | 0.82 | 0.76 | 0.68" in rows
    assert "width | 32 | 32 | 16 | 8" in rows


def test_pareto_front_follows_the_chosen_directions(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures")
    page.until_text("6 models, 5 models on the Pareto front of small latency and large result")

    page.run(
        "(() => { const way = document.querySelectorAll('[aria-labelledby=front] select')[1];"
        " way.value = 'large';"
        " way.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )

    page.until_text("1 model on the Pareto front of large latency and large result")
    assert page.problems() == []


def test_view_is_accessible_in_light_and_dark(
    browser: Browser, search: Shown, tmp_path: Path
) -> None:
    page = search.visit(browser, "architectures", width=1280, height=1900)
    page.until_text("on the Pareto front of")

    found = []
    for theme in ("light", "dark"):
        page.prefer(theme)
        page.until(f"document.documentElement.dataset.theme === '{theme}'")
        folder = Path(os.environ.get("NNI_SCREENSHOTS", tmp_path))
        page.screenshot(folder / f"architectures-{theme}.png")
        found += [f"{theme}: {one}" for one in violations(page)]

    assert found == []
    assert page.problems() == []


@pytest.mark.parametrize("width", [420, 1024])
def test_narrow_window_needs_no_sideways_scrolling(
    browser: Browser, search: Shown, width: int
) -> None:
    page = search.visit(browser, "architectures", width=width, height=768)
    page.until_text("Best architectures")

    assert page.run("document.documentElement.scrollWidth") <= width


def test_trials_of_a_search_show_the_choices_of_their_models(
    browser: Browser, search: Shown
) -> None:
    page = search.visit(browser, "detail")
    page.until("document.querySelectorAll('.trials .t-row').length === 6")

    assert "block" in page.text(".t-head")
    assert "New trial" not in page.text("main")
    page.click(".t-row a")
    page.until_text("Copy as Python", "dialog")
    assert "Edit and run again" not in page.text("dialog")
    assert "nni_version" not in page.text("dialog")


def test_rest_and_nnictl_show_the_space_of_a_search(search: Shown) -> None:
    profile = search.rest("experiment")
    printed = search.shape.nnictl("config", "show", search.experiment).stdout

    assert profile["params"]["searchSpace"] == SPACE
    assert list(profile["params"]["searchSpace"]) == list(SPACE)
    assert "Sequential(Conv2d, ReLU)" in printed
