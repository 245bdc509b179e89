"""A browser for all tests of a module, and the page of a node with a hand-written log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support.busy_node import busy
from tests.cli.support.written_node import WrittenNode
from tests.support.browser.chromium import Browser, browser
from tests.support.browser.page import OpenPage


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


class WrittenPage(OpenPage):
    """The page of a node, which `write` writes."""

    def __init__(self, node: WrittenNode, file: Path, chromium: Browser) -> None:
        super().__init__(file, chromium)
        self.node = node

    def write(self, *words: str) -> None:
        """Write the page. `words` are more arguments of the command."""
        result = self.node.run("replay", "--html", str(self.file), *words)
        assert result.status == 0, result


@pytest.fixture
def page(chromium: Browser, tmp_path: Path) -> Iterator[WrittenPage]:
    """The page of a busy node. After the test, it must have had no error and must not have requested anything."""
    opened = WrittenPage(busy(), tmp_path / "page.html", chromium)
    yield opened
    opened.check()
