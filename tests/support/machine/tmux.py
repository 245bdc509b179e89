"""A real terminal: a tmux server of the test's own, with one window that a shell runs in.

Input: an environment. Output: keys go in, the screen comes out, the window changes its size. Nobody's tmux is touched.
Next: `private_terminal()`.
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
        # The server hands its own environment on to the shell.
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "env", f"PS1={PROMPT} ", *self._shell)
        self.wait_for(PROMPT)

    def type(self, text: str) -> None:
        """A line, and the return key."""
        self.write(text)
        self.press("Enter")

    def ask(self, text: str) -> None:
        """A line to the shell, once it has its prompt again."""
        self.wait_until(lambda screen: screen.splitlines()[-1:] == [PROMPT], "the prompt")
        self.type(text)

    def write(self, text: str) -> None:
        """A line that is not ended yet."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: `C-c`, `Enter`."""
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        """As a person who draws at the window's corner."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> str:
        """What stands in the window, long lines whole."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p", "-J").rstrip().splitlines())

    def wait_for(self, text: str) -> str:
        """The screen, once it has this text."""
        return self.wait_until(lambda screen: text in screen, repr(text))

    def wait_for_line(self, line: str) -> str:
        """The screen, once one of its lines is this: what was typed stands behind a prompt."""
        return self.wait_until(lambda screen: line in screen.splitlines(), f"the line {line!r}")

    def wait_until(self, stands: Callable[[str], bool], what: str, seconds: float = 30) -> str:
        """The screen, once the condition holds for it."""
        try:
            scratch.wait_until(lambda: stands(self.screen), f"{what} on the screen", seconds)
        except TimeoutError as error:
            error.add_note(self.screen)
            raise
        return self.screen

    @property
    def children(self) -> list[int]:
        """The pids of what the shell has started."""
        return scratch.children(int(self._tmux("display-message", "-p", "#{pane_pid}")))

    def destroy(self) -> None:
        """The server with everything in it, from whatever half-way state."""
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
    """A window with a shell at its prompt; gone at the end, with all that runs in it."""
    scratch.sweep(_KIND, lambda folder: Terminal(folder, {}, ()).destroy())
    terminal = Terminal(scratch.create(_KIND), environ, shell or ("sh",))
    try:
        terminal.start()
        yield terminal
    finally:
        terminal.destroy()
