"""The browser of these tests ends, whatever happens while it starts."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.browser import chromium


def test_a_browser_that_cannot_be_controlled_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def fail(self: chromium.Browser, method: str, **_: object) -> None:
        started.append(self._process)
        raise chromium.ScriptError(method)

    monkeypatch.setattr(chromium.Browser, "call", fail)
    with pytest.raises(chromium.ScriptError, match=r"Target\.createTarget"):
        chromium.Browser(tmp_path)
    [process] = started
    assert process.returncode == -signal.SIGKILL


def test_a_browser_that_has_ended_by_itself_is_an_error_and_can_be_closed(tmp_path: Path) -> None:
    with chromium.browser(tmp_path) as running:
        os.killpg(running._process.pid, signal.SIGKILL)
        with pytest.raises((EOFError, BrokenPipeError)):
            running.run("1")
