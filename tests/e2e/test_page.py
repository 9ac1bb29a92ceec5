"""The page in a real browser on a real experiment: content and actions."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from nni_proto.runner.v1.task_pb2 import RunnerPresence

from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.subjects import presence_subject
from tests.support import wait
from tests.support.browser import Browser, Page
from tests.support.experiments import write_experiment
from tests.support.page_experiment import (
    TRIALS,
    WAITING_LR,
    Shown,
    browser,
    create_shown,
    create_waiting,
    shown,
)

__all__ = ["browser", "shown"]  # fixtures
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ROW = ".trials .t-row"
CHARTS = ("Results", "Hyper-parameters", "Intermediate results", "Durations", "Metrics")
SEARCH = "input[aria-label='Search trials']"
ROWS_SHOWN = f"[...document.querySelectorAll('{ROW}')].map((row) => +row.children[1].innerText)"


def numbers(page: Page) -> list[int]:
    """Return the numbers of the trials in the table, from top to bottom."""
    found: list[int] = page.run(ROWS_SHOWN)
    return found


def compact(values: list[int]) -> str:
    return json.dumps(sorted(values), separators=(",", ":"))


def expect_rows(page: Page, expected: list[int]) -> None:
    page.until(f"JSON.stringify({ROWS_SHOWN}.sort((a, b) => a - b)) === '{compact(expected)}'")


def expect_all_rows(page: Page, shown: Shown) -> None:
    expect_rows(page, [one["sequenceId"] for one in shown.trials()])


def keep_clipboard(page: Page) -> None:
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")


def test_overview_shows_state_best_result_budgets_space_and_configuration(
    browser: Browser, shown: Shown
) -> None:
    page = shown.visit(browser)
    page.until_text("Best result")
    best = max(
        (one for one in shown.trials() if one["value"] is not None), key=lambda t: t["value"]
    )

    page.until_text(best["trialJobId"], "section[aria-labelledby=best]")
    text = page.text()

    assert "done" in page.text("section[aria-labelledby=about]")
    assert f"{best['value']:.6g}" in page.text("section[aria-labelledby=best]")
    assert f"of {TRIALS}" in page.text("section[aria-label=Trials]")
    assert "left" in page.text("section[aria-label=Time]")
    assert "loguniform" in page.text("section[aria-labelledby=space]")
    assert "trialCommand" in page.text("section[aria-labelledby=config]")
    assert "of 1 h" in text
    assert page.problems() == []


@pytest.mark.claim("platform", 64)
def test_budgets_are_edited_and_invalid_values_get_a_message(
    browser: Browser, shown: Shown
) -> None:
    page = shown.visit(browser)
    page.click("button", "Change")
    page.fill("input[name=trialConcurrency]", "many")
    page.click("button.primary", "Save")
    page.until_text("must be an integer >= 1")

    page.fill("input[name=trialConcurrency]", "3")
    page.fill("input[name=maxExperimentDuration]", "2h")
    page.click("button.primary", "Save")
    page.until_text("Budgets updated")

    params = shown.rest("experiment")["params"]
    assert params["trialConcurrency"] == 3
    assert params["maxExperimentDuration"] == "7200s"
    page.until_text("of 2 h", "section[aria-label=Time]")


@pytest.mark.claim("platform", 71)
def test_no_time_is_left_after_the_limit(browser: Browser, shown: Shown, tmp_path: Path) -> None:
    own = create_waiting(shown.shape, tmp_path / "code", maxExperimentDuration="1s")
    shown.shape.wait_for(own.experiment, "NO_MORE_TRIAL")
    page = own.visit(browser)

    page.until_text("0 s left", "section[aria-label=Time]")

    bar = "document.querySelector('[aria-label=Time][role=progressbar]')"
    assert page.run(f"{bar}.ariaValueNow") == "100"
    shown.shape.nnictl("stop", own.experiment)


@pytest.mark.claim("platform", 67)
def test_search_selects_by_id_number_status_and_parameter_range(
    browser: Browser, shown: Shown
) -> None:
    trials = shown.trials()
    page = shown.visit(browser, "detail")
    expect_all_rows(page, shown)

    def found(rule: Any) -> list[int]:
        return [one["sequenceId"] for one in trials if rule(one)]

    searches: list[tuple[str, list[int]]] = [
        (trials[4]["trialJobId"], [4]),
        ("#2..4", [2, 3, 4]),
        ("failed", found(lambda one: one["status"] == "FAILED")),
        ("lr:0.01..0.2", found(lambda one: 0.01 <= one["parameters"]["lr"] <= 0.2)),
        ("opt=adam,sgd layers>=3", found(
            lambda one: one["parameters"]["opt"] != "broken" and one["parameters"]["layers"] >= 3
        )),
    ]  # fmt: skip
    for text, expected in searches:
        page.fill(SEARCH, text)
        expect_rows(page, expected)
        assert sorted(numbers(page)) == sorted(expected)
    page.fill(SEARCH, "depth>1")
    page.until_text('There is no column "depth".')


@pytest.mark.claim("platform", 67)
def test_sorting_puts_trials_without_a_result_last_both_ways(
    browser: Browser, shown: Shown
) -> None:
    trials = shown.trials()
    failed = {one["sequenceId"] for one in trials if one["value"] is None}
    best = sorted(
        (one for one in trials if one["value"] is not None), key=lambda one: -one["value"]
    )
    down = [one["sequenceId"] for one in best]
    page = shown.visit(browser, "detail")
    expect_all_rows(page, shown)

    page.click("[role=columnheader] button", "Result")
    page.until(f"{ROWS_SHOWN}[0] === {down[0]}")
    first = numbers(page)
    page.click("[role=columnheader] button", "Result")
    page.until(f"{ROWS_SHOWN}[0] === {down[-1]}")
    second = numbers(page)

    assert failed, "some trials fail in this experiment"
    assert first[: len(down)] == down
    assert second[: len(down)] == down[::-1]
    assert set(first[len(down) :]) == set(second[len(down) :]) == failed


@pytest.mark.claim("platform", 68)
def test_two_trials_are_compared_and_copied_as_python(browser: Browser, shown: Shown) -> None:
    trials = shown.judged()[:2]
    page = shown.visit(browser, "detail")
    expect_all_rows(page, shown)
    for one in trials:
        page.click(f"input[aria-label='Select trial {one['sequenceId']}']")
    page.click("button", "Compare")
    page.until_text("Compare 2 trials", "dialog")
    page.until("document.querySelector('dialog canvas')")
    text = page.text("dialog")
    for one in trials:
        assert one["trialJobId"] in text
        assert f"{one['parameters']['lr']:.6g}" in text
    page.press("Escape")
    page.until("!document.querySelector('dialog')")

    page.click(f"{ROW} a", trials[0]["trialJobId"])
    keep_clipboard(page)
    page.click("dialog button", "Copy as Python")
    page.until_text("Copied", "dialog")
    assert ast.literal_eval(page.run("window.copied")) == trials[0]["parameters"]


def test_failed_trial_shows_its_explanation_and_output(browser: Browser, shown: Shown) -> None:
    failed = next(one for one in shown.trials() if one["status"] == "FAILED")
    page = browser.new_page()
    page.open(shown.address("detail", trial=failed["trialJobId"]))

    page.until_text("Explanation", "dialog")
    page.until_text("there is no optimiser of this name", "dialog")
    page.click("dialog [role=tab]", "Logs")
    page.click("dialog [role=tab]", "stdout")
    page.until_text("optimiser: broken", ".log-text")
    page.click("dialog [role=tab]", "stderr")
    page.until_text("there is no optimiser", ".log-text")
    assert page.problems() == []


@pytest.mark.claim("platform", 69)
def test_custom_trial_is_validated_and_run_and_a_live_one_is_killed(
    browser: Browser, shown: Shown, tmp_path: Path
) -> None:
    own = create_waiting(shown.shape, tmp_path / "code")
    done = wait.until(own.judged, 60, "a trial is done")[0]
    page = browser.new_page()
    page.open(own.address("detail", trial=done["trialJobId"]))
    page.click("dialog button", "Edit and run again")
    page.fill(".form-grid label:nth-child(2) input", "7")
    page.click("button.primary", "Run")
    page.until_text("layers must be an integer from 1 to 2, got 7")
    page.fill(".form-grid label:nth-child(2) input", "2")
    page.click("button.primary", "Run")

    made = wait.until(lambda: own.in_state("SUCCEEDED", source="customized"), 60, "it has run")
    waiting = wait.until(lambda: waiting_in(own), 60, "a trial waits")[0]
    page.open(own.address("detail", trial=waiting["trialJobId"]))
    page.click("dialog [role=tab]", "Logs")
    page.until_text("waiting", ".log-text")
    page.run("window.confirm = () => true")
    page.click("dialog button", "Kill")
    page.until_text("killed", "dialog")

    assert [one["parameters"]["layers"] for one in made] == [2]
    killed = wait.until(lambda: own.in_state("USER_CANCELED"), 60, "it is killed")
    assert [one["trialJobId"] for one in killed] == [waiting["trialJobId"]]
    assert page.problems() == []
    shown.shape.nnictl("stop", own.experiment)


def waiting_in(shown: Shown) -> list[dict[str, Any]]:
    """Return the running trials that end only when they are killed."""
    return [one for one in shown.in_state("RUNNING") if one["parameters"]["lr"] == WAITING_LR]


@pytest.mark.claim("platform", 66)
def test_intermediate_filter_leaves_exactly_the_trials_in_range(
    browser: Browser, shown: Shown
) -> None:
    reports = shown.rest("metric-data?type=PERIODICAL")
    fourth = [one["data"]["default"] for one in reports if one["sequence"] == 3]
    low, high = sorted(fourth)[1], sorted(fourth)[-2]
    page = shown.visit(browser, "charts")
    page.click("[role=tab]", "Intermediate results")
    page.until(f"document.querySelector('[data-count]')?.dataset.count === '{len(fourth)}'")

    page.fill("input[aria-label^='Number of the intermediate']", "4")
    page.fill("input[aria-label='Smallest value']", repr(low))
    page.fill("input[aria-label='Largest value']", repr(high))

    page.until(f"document.querySelector('[data-count]').dataset.count === '{len(fourth) - 2}'")
    assert page.problems() == []


@pytest.mark.parametrize(
    "tab", ["Results", "Hyper-parameters", "Intermediate results", "Durations", "Metrics"]
)
def test_every_chart_is_drawn_and_described_in_text(
    browser: Browser, shown: Shown, tab: str
) -> None:
    page = shown.visit(browser, "charts")
    page.click("[role=tab]", tab)
    page.until("document.querySelector('[role=tabpanel] [role=img]')")

    drawn = page.until(
        """(() => {
          const canvas = document.querySelector('[role=tabpanel] canvas');
          if (!canvas?.width) return 0;
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          let inked = 0;
          for (let i = 3; i < data.length; i += 4) inked += data[i] > 0;
          return inked;
        })()"""
    )
    words = page.run("document.querySelector('[role=tabpanel] [role=img]').ariaLabel")

    assert drawn > 1000
    assert any(character.isdigit() for character in words)
    assert page.problems() == []


def test_importance_is_shown_for_each_parameter(browser: Browser, shown: Shown) -> None:
    page = shown.visit(browser, "charts")
    page.click("[role=tab]", "Importance")

    page.until_text("lr", ".importance")
    assert "%" in page.text(".importance")


@pytest.mark.claim("platform", 65)
def test_best_so_far_never_gets_worse(browser: Browser, shown: Shown) -> None:
    page = shown.visit(browser)
    page.click("summary", "Improvements as a table")
    rows = page.run(
        "[...document.querySelectorAll('details tbody tr')].map((row) => +row.cells[2].innerText)"
    )

    assert rows
    assert rows == sorted(rows)


@pytest.mark.claim("platform", 72)
def test_summary_download_is_json_with_everything(
    browser: Browser, shown: Shown, tmp_path: Path
) -> None:
    page = shown.visit(browser)
    page.until_text("Best result")
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("button", "More")
    page.click(".menu-item", "Download a summary")
    path = tmp_path / f"experiment-{shown.experiment}.json"
    text = wait.until(lambda: path.read_text() if path.exists() else "", 60, "download")
    summary = json.loads(text)

    assert summary["experimentParameters"]["params"]["trialCommand"]
    assert len(summary["trialMessage"]) == len(shown.trials())
    whole = [one for one in summary["trialMessage"] if one["status"] == "SUCCEEDED"]
    assert all(len(one["intermediate"]) == 5 for one in whole)


@pytest.mark.claim("platform", 74)
def test_all_experiments_are_listed_and_filtered_by_several_states(
    browser: Browser, shown: Shown, tmp_path: Path
) -> None:
    other = create_shown(shown.shape, tmp_path / "code").experiment
    shown.shape.nnictl("stop", other)
    page = shown.visit(browser, "experiment")
    page.until_text(other)
    page.until_text(shown.experiment)

    page.click(".chip", "stopped")
    page.until(f"!document.body.innerText.includes('{shown.experiment}')")
    assert other in page.text()
    page.click(".chip", "done")
    page.until_text(shown.experiment)


def test_user_without_token_sees_everything_and_changes_nothing(
    browser: Browser, shown: Shown
) -> None:
    page = browser.new_page()
    page.open(shown.address(token=False))
    page.until_text("Best result")

    button = "[...document.querySelectorAll('button')].find((b) => b.innerText.includes('Change'))"
    assert page.run(f"{button}.disabled") is True
    assert "nnictl webui url" in page.run(f"{button}.title")


@pytest.mark.claim("platform", 70)
def test_page_updates_without_reload_and_keeps_the_selection(
    browser: Browser, shown: Shown
) -> None:
    page = shown.visit(browser, "detail")
    expect_all_rows(page, shown)
    page.click("input[aria-label='Select trial 3']")
    known = len(shown.trials())
    shown.shape.nnictl("update", "trialnum", shown.experiment, "-v", str(known + 2))

    page.until_text(f"{known + 2} trials", ".table-foot", 30)

    assert "1 trial selected" in page.text(".selection")
    assert page.run("document.querySelector(\"input[aria-label='Select trial 3']\").checked")


def test_missing_experiment_gets_a_message(browser: Browser, shown: Shown) -> None:
    page = browser.new_page()
    page.open(shown.address().replace(shown.experiment, "nosuch00"))

    page.until_text("This experiment cannot be shown")
    assert "nosuch00" in page.text("main")
    page.click("main a", "All experiments")
    page.until_text(shown.experiment)


def test_page_reconnects_after_a_restart_of_the_manager(browser: Browser, shown: Shown) -> None:
    page = shown.visit(browser)
    page.until_text("live", ".live")
    shown.shape.kill("manager")

    page.until_text("connection lost", ".live", 30)
    page.until_text("live", ".live", 60)
    best = max(shown.judged(), key=lambda one: float(one["value"]))
    page.until_text(best["trialJobId"], "section[aria-labelledby=best]")
    assert f"{best['value']:.6g}" in page.text("section[aria-labelledby=best]")


def test_keyboard_moves_through_the_table_and_opens_a_trial(browser: Browser, shown: Shown) -> None:
    page = shown.visit(browser, "detail")
    page.until(f"document.querySelector('{ROW}')")
    top = numbers(page)[:3]
    page.run(f"document.querySelector('{ROW}[tabindex=\"0\"]').focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.until(f"document.activeElement.children[1]?.innerText === '{top[2]}'")
    page.press("Enter")
    page.until_text(f"Trial {top[2]}", "dialog")
    page.until("document.querySelector('dialog:modal')?.contains(document.activeElement)")
    page.press("Escape")

    page.until("!document.querySelector('dialog')")
    page.until(f"document.activeElement.children[1]?.innerText === '{top[2]}'")
    assert page.problems() == []


@pytest.mark.claim("platform", 63)
def test_page_works_under_a_prefix(browser: Browser, shown: Shown, tmp_path: Path) -> None:
    config = write_experiment(tmp_path / "code", maxTrialNumber=1)
    experiment = shown.shape.create(config, "--url_prefix", "a/b")
    url = shown.shape.nnictl("webui", "url", experiment).stdout.split()
    address = next(one for one in url if one.startswith("http"))
    page = browser.new_page()
    page.open(address.partition("?")[0].rstrip("/") + "/oview")
    page.until_text("Best result")

    page.click("nav a", "Trials")
    page.until(f"document.querySelector('{ROW}')")
    assert page.run("location.pathname") == "/a/b/detail"
    assert page.problems() == []


def publish_agent_presence(shown: Shown, version: str) -> None:
    """Publish the presence of an agent on another machine."""
    presence = RunnerPresence(runner_id="box-9", boot_id="b", pool="local", version=version)
    settings = NatsSettings(
        shown.shape.endpoint()["nats"],
        user="manager",
        password=shown.shape.bus_password("manager"),
    )

    async def publish() -> None:
        async with NatsBus(settings) as bus:
            bus.signals.publish(presence_subject("box-9"), presence.SerializeToString())

    asyncio.run(publish())
    wait.until(lambda: shown.installation("version")["otherVersions"], 60, "its presence")


@pytest.mark.claim("platform", 80)
def test_an_agent_of_another_version_is_named_unless_in_debug_mode(
    browser: Browser, shown: Shown, tmp_path: Path
) -> None:
    debugging = create_shown(shown.shape, tmp_path / "code", debug=True)
    publish_agent_presence(shown, "9.9.0")

    warned = shown.visit(browser)
    warned.until_text("agent box-9 has version 9.9.0", ".notice.warning")
    warned.click(".notice.warning button")
    warned.until("document.querySelector('.notice') === null")
    assert warned.problems() == []
    quiet = debugging.visit(browser)
    quiet.until_text("Best result")

    assert quiet.run("document.querySelector('.notice') === null")


def test_experiment_whose_trials_all_failed_shows_an_alert_with_the_error(
    browser: Browser, shown: Shown, tmp_path: Path
) -> None:
    script = "import nni\nnni.get_next_parameter()\nraise ValueError('no such file: data.csv')\n"
    config = write_experiment(tmp_path / "code", script, maxTrialNumber=3)
    failed = Shown(shown.shape, shown.shape.create(config))
    shown.shape.wait_for(failed.experiment, "DONE")

    page = failed.visit(browser)
    page.until_text("All 3 trials so far have failed", "[role=alert]")

    assert "ValueError: no such file: data.csv." in page.text("[role=alert]")
    page.click("[role=alert] a")
    page.until_text("End of stderr", "dialog")


def test_read_only_notice_names_the_command_that_grants_changes(
    browser: Browser, shown: Shown
) -> None:
    page = browser.new_page()
    page.call("Network.clearBrowserCookies")
    page.open(shown.address(token=False))
    page.until_text("read only", "header")

    page.click("header button.live", "read only")
    page.until_text("nnictl webui url", ".notice")

    allowed = shown.visit(browser)
    allowed.until_text("Best result")
    assert "read only" not in allowed.text("header")
