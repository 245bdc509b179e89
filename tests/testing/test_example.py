"""The example of docs/histories-in-tests.md passes on a recorded run, and the page shows it as it is."""

import shutil
from pathlib import Path

from tests.testing.test_history import PLUGIN, ROOT, run

EXAMPLE = ROOT / "examples" / "test_recorded_run.py"
RUN = ROOT / "tests" / "histories" / "exported" / "0.2.0.dev0" / "run.jsonl"
PAGE = ROOT / "docs" / "histories-in-tests.md"


def test_the_example_passes(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    shutil.copy(RUN, tmp_path)
    done = run(tmp_path, *PLUGIN)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_page_shows_the_example() -> None:
    assert f"```python\n{EXAMPLE.read_text()}```\n" in PAGE.read_text()
