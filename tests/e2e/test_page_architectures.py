"""The page on a neural architecture search: choices, best architectures, Pareto front.

Screenshots go to the folder `NNI_SCREENSHOTS`, for review by a person.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

import nni
from nni.nas.experiment import NasExperimentConfig
from nni.nas.experiment.platform_trials import ManagerTrialPlatform
from tests.support.axe import violations
from tests.support.browser import Browser, Page
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
    "depth": {"_type": "choice", "_value": [1, 2, 3], "kind": "depth"},
    "rate": {"_type": "loguniform", "_value": [0.001, 0.1], "kind": "number"},
}
MODEL_GRAPH: Final = {
    "graphs": [
        {
            "name": "Net",
            "traced": True,
            "nodes": [
                {"name": "x", "kind": "input", "text": ""},
                {
                    "name": "stem", "kind": "module", "text": "MutableConv2d(3, width)",
                    "labels": ["width"], "graph": 1,
                },
                {
                    "name": "block", "kind": "layer", "text": "", "labels": ["block", "kernel"],
                    "candidates": [
                        {"name": "conv", "text": "Sequential(Conv2d, ReLU)", "graph": 2},
                        {"name": "skip", "text": "Identity()"},
                    ],
                },
                {
                    "name": "blocks", "kind": "depth", "text": "", "labels": ["depth"],
                    "candidates": [
                        {"name": str(number), "text": "Residual(64)", "graph": 3}
                        for number in range(3)
                    ],
                },
                {
                    "name": "join", "kind": "inputs", "text": "of 3 inputs", "labels": ["inputs"],
                },
                {"name": "flatten", "kind": "function", "text": ""},
                {"name": "head", "kind": "module", "text": "Linear(64, 10)"},
                {"name": "output", "kind": "output", "text": ""},
            ],
            "edges": [
                [0, 1], [1, 2], [2, 3], [1, 4, "inputs", 0], [2, 4, "inputs", 1],
                [3, 4, "inputs", 2], [4, 5], [5, 6], [6, 7],
            ],
        },
        {
            "name": "Stem",
            "traced": False,
            "nodes": [
                {
                    "name": "conv", "kind": "module", "text": "MutableConv2d(3, width)",
                    "labels": ["width"],
                },
                {"name": "norm", "kind": "module", "text": "BatchNorm2d(width)"},
            ],
            "edges": [],
        },
        {
            "name": "Sequential",
            "traced": True,
            "nodes": [
                {"name": "input", "kind": "input", "text": ""},
                {
                    "name": "0", "kind": "module", "text": "Conv2d(64, 64, kernel)",
                    "labels": ["kernel"],
                },
                {"name": "1", "kind": "module", "text": "ReLU()"},
                {"name": "output", "kind": "output", "text": ""},
            ],
            "edges": [[0, 1], [1, 2], [2, 3]],
        },
        {
            "name": "Residual",
            "traced": True,
            "nodes": [
                {"name": "x", "kind": "input", "text": ""},
                {"name": "conv", "kind": "module", "text": "Conv2d(64, 64, 3)"},
                {"name": "add", "kind": "function", "text": ""},
                {"name": "output", "kind": "output", "text": ""},
            ],
            "edges": [[0, 1], [1, 2], [0, 2], [2, 3]],
        },
    ],
    "cut": False,
}  # fmt: skip
MODEL: Final = """\
import nni

sample = nni.get_next_parameter()["sample"]
accuracy = 0.5 + sample["width"] / 100 + (sample["block"] == "conv") / 10
latency = sample["width"] * (3 if sample["block"] == "conv" else 1)
nni.report_final_result({"default": accuracy, "latency": latency})
"""


NETWORK: Final = "section[aria-labelledby=network]"
"""Selector of the card with the drawing."""


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
        platform = ManagerTrialPlatform(config, search_space=SPACE, model_graph=MODEL_GRAPH)
        experiment = platform.open(None)
        for number, (width, block) in enumerate(itertools.product(WIDTHS, ("conv", "skip"))):
            sample = {
                "width": width, "block": block, "kernel": 3, "inputs": [0, 1 + number % 2],
                "rate": 0.01 * (number + 1), "depth": 1 + number % 3,
            }  # fmt: skip
            parameters = {"sample": sample, "model": {"x": [1]}, "nni_version": nni.__version__}
            platform.add(f"model-{number}", parameters)
        shape.wait_for(experiment, "DONE")
        yield Shown(shape, experiment)
        platform.close()


def test_space_is_shown_with_the_share_of_each_candidate(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures", width=1360, height=1500)
    page.until_text("6 choices, 6 evaluated models")

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


def test_network_is_drawn_in_the_order_of_its_data_flow(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures", width=1360, height=1500)
    page.until_text("8 nodes, 4 of them with choices", NETWORK)

    names = page.run(
        f"[...document.querySelectorAll('{NETWORK} .node-name')].map(it => it.innerText)"
    )
    tops = page.run(
        f"[...document.querySelectorAll('{NETWORK} .node')].map(it => it.getBoundingClientRect().y)"
    )

    assert names == ["x", "stem", "block", "blocks", "join", "flatten", "head", "output"]
    assert tops == sorted(tops)
    text = page.text(NETWORK)
    assert "2 choices: block, kernel" in text
    assert "conv: Sequential(Conv2d, ReLU)" in text
    assert page.run(f"document.querySelectorAll('{NETWORK} .edge[data-conditional]').length") == 4
    hidden = page.run(f"document.querySelectorAll('{NETWORK} .node')[2].textContent")
    assert "Leads to blocks, join (choice inputs)." in hidden
    assert page.problems() == []


def test_graph_inside_a_node_opens_and_back_leads_out(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures", width=1360, height=1500)

    page.click(f"{NETWORK} .node-open", "stem")
    page.until_text("forward could not be followed", NETWORK)
    assert "graph=1" in page.run("location.search")
    page.until("document.activeElement.ariaLabel === 'Drawing of stem'")
    page.click(f"{NETWORK} nav button", "Net")
    page.until_text("8 nodes", NETWORK)
    page.click(f"{NETWORK} .node-open", "conv: Sequential")
    page.until_text("Conv2d(64, 64, kernel)", NETWORK)
    assert "4 nodes, 1 of them with choices" in page.text(NETWORK)
    page.run("history.back()")
    page.until_text("8 nodes", NETWORK)
    page.run("history.back()")

    page.until_text("forward could not be followed", NETWORK)
    assert page.problems() == []


def test_choices_of_a_model_are_marked_in_the_network(browser: Browser, search: Shown) -> None:
    page = search.visit(browser, "architectures", width=1360, height=1500)
    page.until_text("8 nodes", NETWORK)
    page.until(f"document.querySelector('{NETWORK} select').options.length === 7")

    page.fill(f"{NETWORK} select", _model(page, 1))

    page.until_text("chosen: conv", NETWORK)
    text = page.text(NETWORK)
    assert "chosen: width 32" in text
    assert "chosen: 2 of 3" in text  # model 4
    assert "chosen: stem, block" in text
    assert "#4 · 0.92" in text
    chosen = page.run(
        f"[...document.querySelectorAll('{NETWORK} [data-chosen]')].map(it => it.innerText)"
    )
    assert len(chosen) == 3  # a layer and two blocks
    assert page.run(f"document.querySelectorAll('{NETWORK} .candidate[data-unused]').length") == 2
    unused = f"document.querySelectorAll('{NETWORK} .edge[data-unused] polygon').length"
    assert page.run(unused) == 1
    assert f"model={_model(page, 1)}" in page.run("location.search")
    folder = os.environ.get("NNI_SCREENSHOTS")
    if folder:
        page.run(f"document.querySelector('{NETWORK}').scrollIntoView()")
        page.run("scrollBy(0, -70)")  # out of the header
        page.screenshot(Path(folder) / "network-model.png")
    assert page.problems() == []


def test_network_is_saved_as_a_picture_of_the_whole_drawing(
    browser: Browser, search: Shown
) -> None:
    page = search.visit(browser, "architectures", width=1360, height=600)
    page.until_text("8 nodes", NETWORK)
    page.run("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }")

    page.click(f"{NETWORK} button", "SVG")
    page.until("window.saved instanceof Blob")
    image = ElementTree.fromstring(page.run("window.saved.text()"))

    texts = [one.text for one in image.iter("{http://www.w3.org/2000/svg}text")]
    assert {"x", "choice: width", "· conv: Sequential(Conv2d, ReLU)", "output"} <= set(texts)
    assert int(image.attrib["height"]) > page.run(
        f"document.querySelector('{NETWORK} .network').clientHeight"
    )


def test_address_names_the_model_and_the_open_graph(browser: Browser, search: Shown) -> None:
    best, second = sorted(search.judged(), key=lambda trial: trial["value"], reverse=True)[:2]
    page = browser.new_page(width=1360, height=1500)
    page.open(search.address("architectures", graph="2:0", model=best["trialJobId"]))
    page.until_text("chosen: kernel 3", NETWORK)

    page.fill(f"{NETWORK} select", second["trialJobId"])

    page.until_text("The chosen model does not use this part.", NETWORK)
    assert "chosen: kernel" not in page.text(NETWORK)
    assert page.problems() == []


def _model(page: Page, place: int) -> str:
    return str(page.run(f"document.querySelector('{NETWORK} select').options[{place}].value"))


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
        page.fill(f"{NETWORK} select", _model(page, 2))
        page.until_text("chosen: width 32", NETWORK)
        found += [f"{theme}, model: {one}" for one in violations(page)]
        page.click(f"{NETWORK} .node-open", "conv: Sequential")
        page.until_text("The chosen model does not use this part.", NETWORK)
        found += [f"{theme}, part: {one}" for one in violations(page)]
        page.click(f"{NETWORK} nav button", "Net")
        page.fill(f"{NETWORK} select", "")

    assert found == []
    assert page.problems() == []


@pytest.mark.parametrize("width", [390, 420, 1024])
def test_narrow_window_needs_no_sideways_scrolling(
    browser: Browser, search: Shown, width: int
) -> None:
    page = search.visit(browser, "architectures", width=width, height=768)
    page.until_text("Best architectures")
    page.until_text("8 nodes", NETWORK)
    folder = os.environ.get("NNI_SCREENSHOTS")
    if folder:
        page.run(f"document.querySelector('{NETWORK}').scrollIntoView()")
        page.screenshot(Path(folder) / f"network-{width}.png")

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
