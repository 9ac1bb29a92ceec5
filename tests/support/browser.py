"""Headless Chromium for tests of the page, controlled over pipes.

The client implements the Chrome DevTools Protocol over file descriptors 3 and 4, so it needs no
driver and no port. All calls are synchronous.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support import wait
from tests.support.chromium import require_chromium

ANSWER_TIMEOUT_S: Final = 60.0
_ATTEMPTS: Final = 5
"""Most clicks until one hits an element that moves."""
_SHOWN: Final = 2000
"""Maximum number of characters of its log in the error about an unexpected exit."""
_FLAGS: Final = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--mute-audio", "--hide-scrollbars", "--lang=en-US",
    "--force-color-profile=srgb", "--no-default-browser-check", "--no-zygote",
)  # fmt: skip

_ENVIRONMENT: Final = {"TZ": "UTC", "LANG": "en_US.UTF-8", "LC_ALL": "en_US.UTF-8"}
"""Environment that makes screenshots equal on all machines."""


_LEFT: Final = ("navigated", "context")
"""Words in the errors about a document that is being replaced."""


class DocumentLeftError(RuntimeError):
    """Error of a script whose document was replaced by another one meanwhile."""


class Browser:
    """Chromium process with an empty profile."""

    def __init__(self, folder: Path) -> None:
        chromium = require_chromium()
        folder.mkdir(parents=True, exist_ok=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser needs exactly 3 and 4; a shell can assign them from any descriptors.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        command = [chromium.path, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._log = folder / "chromium.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", script, "bash", *command],
                pass_fds=(to_browser, from_browser),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **chromium.environment, **_ENVIRONMENT, "HOME": str(folder)},
            )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._next_id = 0
        self._context = ""
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, session: str = "", **arguments: object) -> dict[str, Any]:
        """Send a command and return its result; store the events received in between."""
        self._next_id += 1
        request: dict[str, Any] = {"id": self._next_id, "method": method, "params": arguments}
        if session:
            request["sessionId"] = session
        try:
            os.write(self._write, json.dumps(request).encode() + b"\0")
        except BrokenPipeError as error:
            raise self._ended() from error
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            message = self._receive(deadline)
            if message is None:
                raise TimeoutError(f"the browser did not answer {method}")
            if message.get("id") == self._next_id:
                if "error" in message:
                    text = f"{method}: {message['error']['message']}"
                    left = method == "Runtime.evaluate" and any(word in text for word in _LEFT)
                    raise DocumentLeftError(text) if left else RuntimeError(text)
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def poll(self) -> None:
        """Store the events that have arrived."""
        while (message := self._receive(time.monotonic())) is not None:
            self.events.append(message)

    def _receive(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                return None
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise self._ended()
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _ended(self) -> RuntimeError:
        output = self._log.read_text(errors="replace")[-_SHOWN:]
        return RuntimeError(
            f"the browser has exited with {self._process.wait()}; its log:\n{output}"
        )

    def new_page(self, width: int = 1280, height: int = 860, *, dark: bool = False) -> Page:
        """Open a tab with a profile of its own; close the previous one, which would cost time."""
        if self._context:
            self.call("Target.disposeBrowserContext", browserContextId=self._context)
        context = self.call("Target.createBrowserContext")["browserContextId"]
        self._context = context
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        page.resize(width, height)
        page.prefer("dark" if dark else "light")
        return page


class Page:
    """Tab of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        """Send a command about this tab."""
        return self._browser.call(method, self._session, **arguments)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the viewport, in px."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """Emulate a system with the theme `light` or `dark`."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, address: str) -> None:
        """Go to an address; return when its document has loaded."""
        answer = self.call("Page.navigate", url=address)
        if answer.get("errorText"):
            raise RuntimeError(f"{address}: {answer['errorText']}")
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def _look(self, script: str) -> Any:
        """Return the value of an expression; None while the document is being replaced."""
        try:
            return self.run(script)
        except DocumentLeftError:
            return None

    def until(self, script: str, timeout_s: float = 60.0) -> Any:
        """Wait until an expression is true and return its value."""
        whether = f"(() => {{ const it = ({script}); return it instanceof Node ? true : it; }})()"
        return wait.until(lambda: self._look(whether), timeout_s, script)

    def text(self, selector: str = "body") -> str:
        """Return the visible text of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def until_text(self, words: str, selector: str = "body", timeout_s: float = 60.0) -> None:
        """Wait until an element contains the visible text `words`."""
        found = f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"
        self.until(f"{found}.includes({json.dumps(words)})", timeout_s)

    def click(self, selector: str, words: str = "") -> None:
        """Wait until the first matching element that contains `words` stays, and click on it.

        While a page loads, what comes later moves or replaces what is there, also between the
        press and the release of the button: without a click event at the element it is repeated.

        Raises:
            RuntimeError: the element stays, but another one gets the clicks.
        """
        centre = _CENTRE % (json.dumps(selector), json.dumps(words))
        for _ in range(_ATTEMPTS):
            place = self._place_at_rest(centre, f"{selector} {words}")
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, place["x"], place["y"])
            # Null: the click, or the press, has replaced the document or removed the element.
            if self._look("window.clickMissed") is not True or self._look(centre) is None:
                return
        raise RuntimeError(f"{selector} {words}: no click in {_ATTEMPTS} has reached it")

    def _place_at_rest(self, centre: str, what: str) -> Any:
        before: Any = None

        def at_rest() -> Any:
            nonlocal before
            last, before = before, self._look(centre)
            return before if before == last else None

        return wait.until(at_rest, 60.0, f"{what} at rest")

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move, press or release the mouse; `kind` is e.g. `mouseMoved`."""
        held = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def wheel(self, x: float, y: float, by: float) -> None:
        """Turn the mouse wheel by ``by`` px."""
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def press(self, key: str) -> None:
        """Press and release a key, by its name in KeyboardEvent.key."""
        code = {"Enter": 13, "Escape": 27, "Tab": 9, " ": 32, "ArrowDown": 40, "End": 35}.get(
            key, 0
        )
        text = {"Enter": "\r", " ": " "}.get(key)
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )  # fmt: skip

    def fill(self, selector: str, text: str) -> None:
        """Replace the text of an input with the events of typing."""
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.run(_FILL % (json.dumps(selector), json.dumps(text)))

    def screenshot(self, path: Path) -> None:
        """Save the viewport as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def taken_events(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of the events of a kind so far, and remove these events."""
        self._browser.poll()
        found: list[dict[str, Any]] = []
        others: list[dict[str, Any]] = []
        for event in self._browser.events:
            own = event.get("sessionId") == self._session and event["method"] == method
            (found if own else others).append(event)
        self._browser.events = others
        return [event["params"] for event in found]

    def problems(self) -> list[str]:
        """Return the problems that the browser reported so far: exceptions, errors, violations."""
        self._browser.poll()
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            details: Mapping[str, Any] = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                thrown = details["exceptionDetails"]
                found.append(thrown.get("exception", {}).get("description", thrown["text"]))
            if event["method"] == "Log.entryAdded" and details["entry"]["level"] == "error":
                found.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")
            if event["method"] == "Runtime.consoleAPICalled" and details["type"] == "error":
                found.append(json.dumps(details["args"])[:500])
        return found


_CENTRE: Final = """(() => {
  const all = [...document.querySelectorAll(%s)];
  const fits = (element) => element.innerText.includes(%s) && element.getClientRects().length;
  const one = all.find(fits);
  if (!one) return null;
  one.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
  if (!window.clickTarget) addEventListener("click", ({ target }) => {
    if (window.clickTarget.contains(target)) window.clickMissed = false;
  }, true);
  window.clickTarget = one;
  window.clickMissed = true;
  const { left, top, width, height } = one.getBoundingClientRect();
  return { x: left + width / 2, y: top + height / 2 };
})()"""
_FILL: Final = """(() => {
  const input = document.querySelector(%s);
  const kind = input.constructor;
  Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(input, %s);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new Event("change", { bubbles: true }));
})()"""


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    """Run a browser for the block."""
    browser = Browser(folder)
    try:
        yield browser
    finally:
        browser.close()
