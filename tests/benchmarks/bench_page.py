"""How fast is the page with 10,000 trials: first paint, first rows, scrolling, every chart?

A real manager serves a finished experiment; a headless Chromium looks at it. First paint counts
from the start of the navigation, with an empty cache. Frames count while the wheel turns through
the whole table: those over 50 ms by the browser's own record, and what the page computes for one.
The same record has the longest frame of opening, of each chart, and of what a person does there.
The browser draws without a graphics card, so frames cost more than on a desk; on a busy machine
they wait for a processor, which the computing does not show.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.benchmarks.measure import print_figure, print_header
from tests.benchmarks.page_frames import Frames, chart_actions, opening, table_actions
from tests.support.browser import Browser, Page, running_browser
from tests.support.finished_experiment import write_finished
from tests.support.local_shape import LocalShape, running_shape

TRIALS = int(os.environ.get("TRIALS", "10000"))
EXPERIMENT = "bigone00"
VERBOSE = bool(os.environ.get("VERBOSE"))
"""Whether to print what each long frame ran."""
REPEATS = 5
ROUNDS = 3
"""Repetitions of the actions in the views."""
STEPS = 150
"""Turns of the wheel."""
TURN_PX = 900
CHART = "document.querySelector('.chart canvas')"
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
RECORD_FRAMES = """(() => {
  window.frames_ms = [];
  window.long_frames = 0;
  let last = performance.now();
  const step = (now) => {
    window.frames_ms.push(now - last);
    last = now;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  new PerformanceObserver((list) => { window.long_frames += list.getEntries().length; })
    .observe({ type: 'long-animation-frame' });
})()"""


def _first_looks(browser: Browser, address: str, ready: str) -> tuple[float, float, float]:
    """Return ms until first paint, until the view is there, and until all trials are loaded."""
    page = browser.new_page(1440, 900)
    page.open(address)
    since_start = "performance.now()"
    there = page.until(f"({ready}) && {since_start}", 60)
    loaded = page.until(
        f"document.body.innerText.includes('{TRIALS:,}') && "
        f"!document.body.innerText.includes('loading…') && {since_start}",
        60,
    )
    paint = page.until(FIRST_PAINT)
    return paint, there, loaded


def _cpu_ms(page: Page) -> float:
    """Return what the page's thread has computed so far: no other process adds to that."""
    found = page.call("Performance.getMetrics")["metrics"]
    return 1000 * float(next(one["value"] for one in found if one["name"] == "TaskDuration"))


def _scroll(page: Page) -> tuple[list[float], int, int]:
    """Turn the wheel through the table; return frames in ms, long ones, most rows."""
    page.run(RECORD_FRAMES)
    most = 0
    for step in range(STEPS):
        page.wheel(700, 500, TURN_PX if step % 10 else 40 * TURN_PX)
        most = max(most, page.run("document.querySelectorAll('.trials [role=row]').length"))
    frames: list[float] = page.run("window.frames_ms.slice(2)")
    return frames, int(page.run("window.long_frames")), most


def _actions(browser: Browser, base: str) -> Iterator[Frames]:
    """Yield the long frames of what a person does with all trials of an experiment."""
    loaded = "{there} && !document.querySelector('.loading-part')"
    all_rows = f"document.querySelector('.table-foot')?.innerText.startsWith('{TRIALS:,} trials')"
    for view, there, actions in (
        ("oview", CHART, None),
        ("detail", all_rows, table_actions),
        ("charts", CHART, chart_actions),
    ):
        page = browser.new_page(1440, 900)
        yield opening(page, f"{base}/{view}", loaded.format(there=there))
        if actions is not None:
            yield from actions(page)


def _print_frames(rounds: Iterable[list[Frames]]) -> None:
    """Print the longest frame of each action over the rounds, and the number of long ones."""
    for of_action in zip(*rounds, strict=True):
        longest = [one.longest_ms for one in of_action]
        print_figure(f"longest frame: {of_action[0].action}", longest, "ms", target="<= 50")
        print_figure("   computing of its longest task", [one.task_ms for one in of_action], "ms")
        if VERBOSE:
            for frame in (frame for one in of_action for frame in one.frames):
                print(f"      {frame['ms']:.0f}: {', '.join(frame['scripts'])}")


def _measure(shape: LocalShape, folder: Path) -> None:
    folder.mkdir()
    write_finished(folder, EXPERIMENT, TRIALS)
    port = str(shape.free_port())
    where = str(folder / EXPERIMENT)
    shape.nnictl("view", EXPERIMENT, "--experiment_dir", where, "--port", port)
    base = f"http://127.0.0.1:{port}"
    with running_browser(folder / "browser") as browser:
        version = browser.call("Browser.getVersion")["product"]
        print(f"   {version}, {TRIALS} trials with 10 parameters")
        rows = "document.querySelector('.trials .t-row')"
        looks = [_first_looks(browser, f"{base}/detail", rows) for _ in range(REPEATS)]
        best = "document.querySelector('section[aria-labelledby=best] .big')"
        views = [_first_looks(browser, f"{base}/oview", best) for _ in range(REPEATS)]
        print_figure("first paint", [one[0] for one in looks + views], "ms", target="<= 1000")
        print_figure("overview with the best trial", [one[1] for one in views], "ms")
        print_figure("table with its first rows", [one[1] for one in looks], "ms")
        print_figure("all trials loaded", [one[2] for one in looks], "ms")
        page = browser.new_page(1440, 900)
        page.open(f"{base}/detail")
        page.until(f"document.body.innerText.includes('{TRIALS:,}')", 60)
        page.until("!document.body.innerText.includes('loading…')", 60)
        page.call("Performance.enable", timeDomain="threadTicks")
        before = _cpu_ms(page)
        frames, long_frames, most = _scroll(page)
        computed = (_cpu_ms(page) - before) / len(frames)
        print_figure("a frame while scrolling", frames, "ms", target="none over 50")
        print_figure("computing for a frame, on average", [computed], "ms")
        print_figure("frames over 50 ms", [long_frames], "", target="0")
        print_figure("rows in the document, at most", [most], "", target="<= 200")
        heap = page.call("Runtime.getHeapUsage")["usedSize"]
        print_figure("memory of the page's script", [heap / 1e6], "MB")
        _print_frames([list(_actions(browser, base)) for _ in range(ROUNDS)])


def main() -> int:
    print_header(__doc__ or "")
    with (
        tempfile.TemporaryDirectory(prefix="nni-bench-page-") as folder,
        # Where other people can log in, reading would need the token.
        running_shape(Path(folder), NNI_PRIVATE="no") as shape,
    ):
        _measure(shape, Path(folder) / "experiments")
    return 0


if __name__ == "__main__":
    sys.exit(main())
