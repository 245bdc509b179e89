"""Takes the screenshot of docs/page.md again: `python -m tests.integration.page.screenshot`.

Input: the page of the busy node. Output: docs/page.png.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.cli.support.busy_node import busy
from tests.support.browser.chromium import browser

FILE = Path(__file__).resolve().parents[3] / "docs" / "page.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as chromium:
        page = Path(folder) / "page.html"
        assert busy().run("replay", "--html", str(page)).status == 0
        chromium.size(1100, 700)
        chromium.open(f"{page.as_uri()}#pod/web@35")
        chromium.run("page.ready")
        for control in ("#expand-all", "#tab-entries"):
            chromium.run(f"document.querySelector('{control}').click()")
        chromium.settle()
        chromium.run("page.state.search.texts.block(0)")
        chromium.settle()
        FILE.write_bytes(chromium.screenshot())


if __name__ == "__main__":
    main()
