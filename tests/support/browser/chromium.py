"""Runs headless Chromium and controls it with the DevTools protocol over a pipe, which needs no library and no port.

Input: addresses, scripts, keys. Output: values of scripts, screenshots, and what the page did: its requests and errors.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.scratch import HANG_SECONDS

_KEYS = {
    "Enter": 13, "Tab": 9, " ": 32, "Escape": 27, "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34,
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip
"""The keys that produce no text, or other text than their name, with their codes."""
_TEXTS = {"Enter": "\r", " ": " "}
_SHIFT = 8
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--disable-background-networking",
    "--force-color-profile=srgb",
)


_OF_A_PAGE = {"awaitPromise": True, "returnByValue": True, "allowUnsafeEvalBlockedByCSP": False}
"""Scripts of tests may do what the page itself may do."""


class ScriptError(AssertionError):
    """A script in the page failed."""


class Browser:
    """A running Chromium with one page."""

    def __init__(self, folder: Path) -> None:
        """Start it, with its profile in this folder."""
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        command = [_program(), *_OPTIONS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        shell = ["bash", "-c", f'exec 3<&{to_read} 4>&{to_write}; exec "$@"', "chromium", *command]
        with (folder / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                shell, pass_fds=(to_read, to_write), stdout=log, stderr=log, start_new_session=True
            )
        os.close(to_read)
        os.close(to_write)
        self._left = b""
        self._last = 0
        self._session = ""
        self._requests: dict[str, str] = {}
        self.problems: list[str] = []
        """Exceptions, messages of the console, and refusals by the page's policy."""
        try:
            self._open_page()
        except BaseException:
            self.close()
            raise

    def _open_page(self) -> None:
        # A page of its own: right after the start, the first one may not exist yet.
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser and all of its processes."""
        os.close(self._to)
        os.close(self._from)
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    # -- the protocol ----------------------------------------------------------------------------------------------
    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the DevTools protocol and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise ScriptError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> Any:
        deadline = time.monotonic() + HANG_SECONDS
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self._from, 1 << 20)
            if not more:
                raise EOFError("Chromium has ended; see chromium.log")
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def _note(self, event: Any) -> None:
        given = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self._requests[given["requestId"]] = given["request"]["url"]
            case "Network.loadingFailed" if given.get("blockedReason") == "csp":
                self._requests.pop(given["requestId"], None)
            case "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled":
                self.problems.append(f"console.{given['type']}: {given['args']}")
            case "Log.entryAdded":
                self.problems.append(f"{given['entry']['source']}: {given['entry']['text']}")

    def requested(self) -> set[str]:
        """Return the addresses that were requested and not refused by the page's policy since the last call."""
        found = set(self._requests.values())
        self._requests.clear()
        return found

    def memory_bytes(self) -> int:
        """Return the resident memory of the process that runs the page: Chromium keeps another one in reserve, which is
        smaller.
        """
        return max(
            int(line.split()[1]) * 1024
            for folder in Path("/proc").glob("[0-9]*")
            if _is_renderer(folder, self._process.pid)
            for line in (folder / "status").read_text().splitlines()
            if line.startswith("VmRSS:")
        )

    # -- what a test does ------------------------------------------------------------------------------------------
    def open(self, address: str) -> None:
        """Open an address and wait until the document is loaded."""
        self.call("Page.navigate", url=address)
        self.run("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page, wait for its promise, and return its value."""
        answer = self.call("Runtime.evaluate", expression=script, **_OF_A_PAGE)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ScriptError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press keys, one after the other, as a person does."""
        for key in keys:
            about: dict[str, Any] = {"key": key, "modifiers": _SHIFT if shift else 0}
            if key in _KEYS:
                about |= {"windowsVirtualKeyCode": _KEYS[key], "code": "Space" if key == " " else key}
            text = _TEXTS.get(key, "" if key in _KEYS else key)
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **about)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has drawn what it was asked for."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

    def size(self, width: int, height: int, *, phone: bool = False, dark: bool = False) -> None:
        """Give the page this size in CSS pixels, as a phone or as a window, with a light or a dark theme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone, maxTouchPoints=2)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])

    def screenshot(self) -> bytes:
        """Return the visible page as a PNG image."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


def _is_renderer(folder: Path, group: int) -> bool:
    try:
        return os.getpgid(int(folder.name)) == group and b"--type=renderer" in (folder / "cmdline").read_bytes()
    except (ProcessLookupError, FileNotFoundError):
        return False


def _program() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found, "no chromium on PATH: apt-get install chromium"
    return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Run a browser for the duration of the block."""
    running = Browser(folder)
    try:
        yield running
    finally:
        running.close()
