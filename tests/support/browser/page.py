"""A page of `chronolet replay --html` in a browser.

Input: the file, a browser; clicks and moments. Output: what the page shows.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.browser.chromium import Browser


class OpenPage:
    """A page, which `open` opens."""

    def __init__(self, file: Path, chromium: Browser) -> None:
        self.file = file
        self.browser = chromium
        chromium.problems.clear()
        chromium.requested()
        chromium.size(1200, 800)

    def open(self, fragment: str = "") -> None:
        """Open the page, in a new document, and wait until it is ready."""
        self.browser.open("about:blank")
        self.browser.open(f"{self.file.as_uri()}{fragment}")
        self.browser.run("page.ready")
        self.browser.settle()

    def check(self) -> None:
        """Assert that the page has had no error and has requested nothing since it was created."""
        assert self.browser.problems == []
        assert {one.partition("#")[0] for one in self.browser.requested()} <= {"data:,", self.file.as_uri()}

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        found: str = self.browser.run(f"document.querySelector({selector!r}).textContent")
        return found

    def click(self, selector: str) -> None:
        """Click on an element."""
        self.browser.run(f"document.querySelector({selector!r}).click()")
        self.browser.settle()

    def table(self, name: str) -> list[list[str]]:
        """Choose a table, and return the cells of its rows as the page shows them."""
        self.browser.run(
            "(() => { const select = document.getElementById('table');"
            f"select.value = page.state.model.tables.findIndex((one) => one.name === {name!r});"
            "select.dispatchEvent(new Event('change')) })()"
        )
        self.browser.settle()
        found: list[list[str]] = self.browser.run(
            "[...document.querySelectorAll('#rows tbody tr')]"
            ".map(row => [...row.children].map(cell => cell.textContent))"
        )
        return found

    def slide(self, milliseconds: int) -> None:
        """Move the slider to a time."""
        self.browser.run(
            f"(() => {{ const slider = document.getElementById('slider'); slider.value = {milliseconds};"
            "slider.dispatchEvent(new Event('input')) })()"
        )
        self.browser.settle()

    def go_to(self, text: str) -> None:
        """Type a moment into the field for it."""
        self.browser.run(f"document.getElementById('go-to').value = {text!r}")
        self.click("#go button")
