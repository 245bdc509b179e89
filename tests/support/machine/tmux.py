"""A real terminal: a private tmux server with one window that runs a shell.

Input: an environment, keys, window sizes. Output: the screen. Other tmux servers are not affected. Next:
`private_terminal()`.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

PROMPT = "node$"
COLUMNS, ROWS = 100, 30
_KIND = "tmux"


class Terminal:
    """A window with a shell."""

    def __init__(self, folder: Path, environ: Mapping[str, str], shell: Sequence[str]) -> None:
        self.folder = folder
        self._shell = shell
        self._environ = {**environ, "LC_ALL": "C.UTF-8"}
        self._environ.pop("TMUX", None)

    def start(self) -> None:
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        # The server passes its own environment on to the shell.
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "env", f"PS1={PROMPT} ", *self._shell)
        self.wait_for(PROMPT)

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        self.write(text)
        self.press("Enter")

    def ask(self, text: str) -> None:
        """Type a line once the shell shows its prompt."""
        self.wait_until(lambda screen: screen.splitlines()[-1:] == [PROMPT], "the prompt")
        self.type(text)

    def write(self, text: str) -> None:
        """Type text without pressing Enter."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys, named as in tmux: `C-c`, `Enter`."""
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> str:
        """The content of the window, with wrapped lines joined."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p", "-J").rstrip().splitlines())

    def wait_for(self, text: str) -> str:
        """Wait for this text; return the screen."""
        return self.wait_until(lambda screen: text in screen, repr(text))

    def wait_for_line(self, line: str) -> str:
        """Wait for a line that equals `line`; typed text has a prompt before it. Return the screen."""
        return self.wait_until(lambda screen: line in screen.splitlines(), f"the line {line!r}")

    def wait_until(self, holds: Callable[[str], bool], what: str, seconds: float = 30) -> str:
        """Wait until `holds` is true for the screen; return the screen."""
        try:
            scratch.wait_until(lambda: holds(self.screen), f"{what} on the screen", seconds)
        except TimeoutError as error:
            error.add_note(self.screen)
            raise
        return self.screen

    @property
    def children(self) -> list[int]:
        """The pids of processes that the shell has started."""
        return scratch.children(int(self._tmux("display-message", "-p", "#{pane_pid}")))

    def destroy(self) -> None:
        """Remove the server with everything in it, in any state."""
        named = scratch.pids_naming(f"{self.folder}/")
        scratch.kill([*named, *(child for pid in named for child in scratch.children(pid))])
        shutil.rmtree(self.folder)

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-S", f"{self.folder}/socket", *words]
        done = subprocess.run(
            command, env=self._environ, capture_output=True, text=True, timeout=HANG_SECONDS, check=True
        )
        return done.stdout


@contextmanager
def private_terminal(environ: Mapping[str, str], *shell: str) -> Iterator[Terminal]:
    """Run a window with a shell at its prompt; at the end, kill all its processes."""
    scratch.sweep(_KIND, lambda folder: Terminal(folder, {}, ()).destroy())
    terminal = Terminal(scratch.create(_KIND), environ, shell or ("sh",))
    try:
        terminal.start()
        yield terminal
    finally:
        terminal.destroy()
