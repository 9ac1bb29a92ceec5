"""The browser of the page's tests clicks on what is there, also while a page changes."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.browser import Browser
from tests.support.page_experiment import browser

__all__ = ["browser"]

PAGE = """<!doctype html>
<style>button, #cover { position: absolute; left: 0; top: 0; width: 90px; height: 90px; }</style>
<button>Save</button>
<script>
  window.clicks = 0;
  const button = document.querySelector("button");
  button.addEventListener("click", () => { window.clicks += 1; });
  %s
</script>"""
MOVED = "addEventListener('pointerdown', () => { button.style.left = '400px'; }, { once: true });"
REPLACED = """addEventListener("pointerdown", () => {
  const another = button.cloneNode(true);
  another.addEventListener("click", () => { window.clicks += 1; });
  button.replaceWith(another);
}, { once: true });"""
COVERED = "document.body.insertAdjacentHTML('beforeend', '<div id=cover></div>');"
REMOVED = "button.addEventListener('click', () => button.remove());"


@pytest.mark.parametrize("change", [MOVED, REPLACED, REMOVED], ids=["moved", "replaced", "removed"])
def test_a_button_gets_one_click_though_it_changes(browser: Browser, change: str) -> None:
    page = browser.new_page()
    page.open("data:text/html," + quote(PAGE % change))

    page.click("button", "Save")

    assert page.run("window.clicks") == 1


def test_a_click_on_a_covered_button_is_an_error(browser: Browser) -> None:
    page = browser.new_page()
    page.open("data:text/html," + quote(PAGE % COVERED))

    with pytest.raises(RuntimeError, match="button Save: no click in 5 has reached it"):
        page.click("button", "Save")
