"""A browser for all tests of a module, and the page of a node with a hand-written log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support.busy_node import busy
from tests.cli.support.written_node import WrittenNode
from tests.support.browser.chromium import Browser, browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


class OpenPage:
    """A node, and its page in the browser."""

    def __init__(self, node: WrittenNode, file: Path, chromium: Browser) -> None:
        self.node = node
        self.file = file
        self.browser = chromium
        chromium.problems.clear()
        chromium.requested()
        chromium.size(1200, 800)

    def write(self, *words: str) -> None:
        """Write the page. `words` are more arguments of the command."""
        result = self.node.run("replay", "--html", str(self.file), *words)
        assert result.status == 0, result

    def open(self, fragment: str = "") -> None:
        """Open the page, in a new document, and wait until it is ready."""
        self.browser.open("about:blank")
        self.browser.open(f"{self.file.as_uri()}{fragment}")
        self.browser.run("page.ready")
        self.browser.settle()

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


@pytest.fixture
def page(chromium: Browser, tmp_path: Path) -> Iterator[OpenPage]:
    """The page of a busy node. After the test, it must have had no error and must not have requested anything."""
    opened = OpenPage(busy(), tmp_path / "page.html", chromium)
    yield opened
    assert chromium.problems == []
    assert {one.partition("#")[0] for one in chromium.requested()} <= {"data:,", opened.file.as_uri()}
