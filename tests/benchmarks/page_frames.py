"""Animation frames of the page that last longer than 50 ms, by what a person does in it.

The browser itself records them, with the time from their start until they are drawn, which is
longer on a busy machine; and the processor time of each task of the page's thread, which is not. An
action has ended when the page has drawn several frames in a row without a long one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.support import wait
from tests.support.browser import Page

_RECORD: Final = """(() => {
  if (window.longFrames) return;
  window.longFrames = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries())
      window.longFrames.push({
        ms: one.duration,
        scripts: one.scripts.map((it) => `${it.invoker} ${Math.round(it.duration)}`),
      });
  }).observe({ type: "long-animation-frame", buffered: true });
})()"""
_SETTLED: Final = """new Promise((resolve) => {
  let [quiet, last] = [0, performance.now()];
  const step = (now) => {
    quiet = now - last > 34 ? 0 : quiet + 1;
    last = now;
    if (quiet < 20) requestAnimationFrame(step);
    else setTimeout(() => resolve(window.longFrames.splice(0)), 100);
  };
  requestAnimationFrame(step);
})"""
"""Resolves to the long frames since the last call, after 20 quick frames in a row."""
_TRACED: Final = {"includedCategories": ["toplevel", "__metadata"]}
"""Tasks of threads, and the threads' names."""
_CHART: Final = ".tab-panel canvas"
_POINT: Final = (500.0, 480.0)
"""Place inside of the table and of a chart, in px."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Long animation frames of one action."""

    action: str
    frames: list[dict[str, Any]]
    task_ms: float
    """Processor time of the longest task of the page's thread, script and drawing."""

    @property
    def longest_ms(self) -> float:
        """Duration of the longest frame; 0 if none took 50 ms."""
        return max((float(one["ms"]) for one in self.frames), default=0.0)


def measured(page: Page, action: str, act: Callable[[], object]) -> Frames:
    """Return the long frames of one action on a page that has been opened."""
    page.run(_RECORD)
    page.run(_SETTLED)
    page.call("Tracing.start", transferMode="ReportEvents", traceConfig=_TRACED)
    act()
    frames = page.run(_SETTLED)
    return Frames(action, frames, _longest_task_ms(page))


def opening(page: Page, address: str, loaded: str) -> Frames:
    """Return the long frames from the start of a navigation until an expression is true."""

    def act() -> None:
        page.open(address)
        page.run(_RECORD)
        page.until(loaded)

    page.run(_RECORD)
    view = address.rsplit("/", 1)[1]
    return measured(page, f"open {view}", act)


def _longest_task_ms(page: Page) -> float:
    """End the trace; return the greatest processor time of a task of the page's thread."""
    page.call("Tracing.end")
    wait.until(lambda: page.taken_events("Tracing.tracingComplete"), 60.0, "the trace")
    parts = page.taken_events("Tracing.dataCollected")
    events = [event for one in parts for event in one["value"]]
    threads = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    tasks = (one["tdur"] for one in events if (one["pid"], one["tid"]) in threads and "tdur" in one)
    return max(tasks, default=0) / 1000


def table_actions(page: Page) -> Iterator[Frames]:
    """Yield the long frames of each action in the table of trials, which is open."""
    for title in ("Result", "Duration", "parameter_3"):
        header = f"[role=columnheader] button[title='Sort by {title}']"
        yield measured(page, f"sort by {title}", partial(page.click, header))
    for text in ("p", "parameter_0>0.5", "0.1", ""):
        search = partial(page.fill, "input[type=search]", text)
        yield measured(page, f"search {json.dumps(text)}", search)
    yield measured(page, "select all", lambda: page.click("[role=columnheader] input"))
    yield measured(page, "select none", lambda: page.click("[role=columnheader] input"))
    yield measured(page, "open a trial", lambda: page.click(".t-row .t-cell:nth-child(3)"))
    yield measured(page, "close it", lambda: page.press("Escape"))


def chart_actions(page: Page) -> Iterator[Frames]:
    """Yield the long frames of each action in the charts, of which the first one is open."""
    names = page.run("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.innerText)")
    for name in [*names[1:], names[0]]:
        yield measured(page, f"chart {name}", partial(_select, page, name))
        if page.run(f"Boolean(document.querySelector({json.dumps(_CHART)}))"):
            yield measured(page, f"point at {name}", lambda: _point(page))
    yield measured(page, "zoom Results", lambda: _drag(page))
    yield measured(page, "other theme", lambda: page.click("header .quiet[aria-label^=Switch]"))


def _select(page: Page, name: str) -> None:
    page.click("[role=tab]", name)
    page.until(
        f"document.querySelector({json.dumps(_CHART)}) || "
        "document.querySelector('.tab-panel .importance, .tab-panel .empty')"
    )


def _point(page: Page) -> None:
    for step in range(10):
        page.mouse("mouseMoved", _POINT[0] + 30 * step, _POINT[1] + 3 * step)


def _drag(page: Page) -> None:
    page.mouse("mouseMoved", *_POINT)
    page.mouse("mousePressed", *_POINT)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=900, y=500, button="left", buttons=1)
    page.mouse("mouseReleased", 900, 500)
