"""What a user sees in a real terminal, with a real agent, Docker and Redis."""

import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.machine import tmux
from tests.support.machine.tmux import Terminal, private_terminal

IN_POD = "/ #"
RUNS = "trap 'exit 0' TERM; echo up; while :; do sleep 3600 & wait $!; done"


@pytest.fixture
def environ(node: Node, tmp_path: Path) -> dict[str, str]:
    """An environment with `chronolet` on PATH."""
    script = tmp_path / "bin" / "chronolet"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m chronolet.cli "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {**node.environ, "PATH": f"{script.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}


@pytest.fixture
def terminal(environ: dict[str, str]) -> Iterator[Terminal]:
    """A shell that finds `chronolet` on PATH."""
    with private_terminal(environ) as window:
        yield window


def test_get_watch_shows_changes_of_a_pod(node: Node, terminal: Terminal) -> None:
    node.write("seen.yaml", a_pod("seen", shell("app", RUNS)))
    node.wait_until_running("seen")
    terminal.type("chronolet get pods -w")
    first = terminal.wait_until(lambda screen: row(screen, "seen", "1/1", "Running"), "the pod")
    assert "NAME" in first
    node.kill_process("seen", "app")
    terminal.wait_until(lambda screen: row(screen, "seen", "0/1", "Error"), "its death")
    terminal.wait_until(lambda screen: screen.count(" Running ") > 1, "its restart")
    (node.folder / "seen.yaml").unlink()
    terminal.wait_until(lambda screen: row(screen, "seen", "1/1", "Terminating"), "its removal")
    terminal.press("C-c")
    terminal.ask("echo status=$?")
    assert "Traceback" not in terminal.wait_for_line("status=130")


def row(screen: str, *words: str) -> bool:
    """Return whether a line begins with these words."""
    return any(tuple(line.split()[: len(words)]) == words for line in screen.splitlines())


def test_a_shell_in_a_container_behaves_as_a_local_one(node: Node, terminal: Terminal) -> None:
    node.write("shell.yaml", a_pod("shell", shell("app", RUNS)))
    node.wait_until_running("shell")
    terminal.type("before=$(stty -g); chronolet exec -it shell -- sh")
    terminal.wait_for(IN_POD)
    terminal.type("until stty size | grep '30 100'; do :; done")
    terminal.wait_for_line(f"{tmux.ROWS} {tmux.COLUMNS}")
    # The window shrinks while the shell in the container waits for the new size.
    terminal.type("until stty size | grep '20 90'; do :; done; echo narrow''er")
    terminal.resize(90, 20)
    terminal.wait_for_line("narrower")

    terminal.type("cat")
    terminal.wait_until(lambda _: "cat" in node.processes("shell", "app"), "a running cat")
    terminal.press("C-c")
    terminal.wait_until(lambda _: "cat" not in node.processes("shell", "app"), "the end of cat")
    terminal.type("echo status=$?")
    terminal.wait_for_line("status=130")
    terminal.type("echo a''gain")
    terminal.wait_for_line("again")
    terminal.press("C-p", "Enter")
    terminal.wait_until(lambda screen: screen.splitlines().count("again") == 2, "the last line again")

    terminal.type("exit 5")
    terminal.wait_for_line("command terminated with exit code 5")
    terminal.ask('echo status=$?; test "$before" = "$(stty -g)" && echo sa\'\'me')
    terminal.wait_for_line("status=5")
    terminal.wait_for_line("same")
    assert node.processes("shell", "app").count("sh") == 1, "the shell has ended, the container has not"


def test_a_terminal_is_restored_after_exec_was_terminated(node: Node, terminal: Terminal) -> None:
    node.write("ended.yaml", a_pod("ended", shell("app", RUNS)))
    node.wait_until_running("ended")
    terminal.type("before=$(stty -g); chronolet exec -it ended -- sh")
    terminal.wait_for(IN_POD)
    for pid in terminal.children:
        os.kill(pid, signal.SIGTERM)
    # The prompt appears after the container's prompt, on the same line.
    terminal.wait_until(lambda screen: screen.endswith(tmux.PROMPT), "the prompt")
    terminal.type('echo status=$?; test "$before" = "$(stty -g)" && echo sa\'\'me')
    terminal.wait_for_line("status=143")
    terminal.wait_for_line("same")


def test_logs_follow_ends_with_the_container(node: Node, terminal: Terminal) -> None:
    # The container writes its last line before it ends, and ends on request: a client that follows the engine's log may
    # miss what is written while the container ends.
    on_term = "trap 'echo bye; read line < /tmp/end; exit 3' TERM"
    script = f"{on_term}; echo up; while read line < /tmp/pipe; do echo $line; done & wait"
    node.write("talks.yaml", a_pod("talks", shell("app", f"mkfifo /tmp/pipe /tmp/end; {script}")))
    node.wait_until_running("talks")
    terminal.type("chronolet logs -f talks")
    terminal.wait_for_line("up")
    assert node.chronolet("exec", "talks", "--", "sh", "-c", "echo some words > /tmp/pipe").status == 0
    terminal.wait_for_line("some words")
    assert node.chronolet("exec", "talks", "--", "kill", "1").status == 0
    terminal.wait_for_line("bye")
    # The `exec` command may be killed with the container before it can report its status.
    node.chronolet("exec", "talks", "--", "sh", "-c", "echo > /tmp/end")
    terminal.ask("echo status=$?")
    terminal.wait_for_line("status=0")
    node.journal.wait_for("the next attempt", lambda: node.restarts("talks") == [1])
    terminal.ask("chronolet logs -p talks | tail -n 1 | rev")
    terminal.wait_for_line("eyb")


def complete(window: Terminal, typed: str, expected: str) -> None:
    """Complete `typed` with the Tab key, pressing it again until the screen shows `expected`: on a busy node,
    completion gives up after a second.
    """
    window.write(typed)
    pressed = 0.0

    def is_complete(screen: str) -> bool:
        nonlocal pressed
        # The key is not pressed while the shell is completing: a second Tab would complete the next word.
        if expected not in screen and time.monotonic() > pressed + PRESS_AGAIN_SECONDS and not window.children:
            pressed = time.monotonic()
            window.press("Tab")
        return expected in screen

    window.wait_until(is_complete, expected, 60)


PRESS_AGAIN_SECONDS = 10.0

SHELLS = {
    "bash": (["bash", "--norc", "-i"], "source <(chronolet completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u; source <(chronolet completion zsh)"),
    "fish": (
        ["fish", "--no-config", "-i", "-C", f"function fish_prompt; echo '{tmux.PROMPT} '; end"],
        "chronolet completion fish | source",
    ),
}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SHELLS)
def test_tab_completes_commands_pods_and_containers(node: Node, environ: dict[str, str], name: str) -> None:
    both = [shell("server", RUNS), shell("writer", RUNS)]
    node.write(f"{name}.yaml", a_pod(f"complete-{name}", *both))
    node.wait_until_running(f"complete-{name}")
    command, source = SHELLS[name]
    with private_terminal(environ, *command) as window:
        window.type(source)
        window.ask("echo be''gun")
        window.wait_for_line("begun")
        complete(window, "chronolet desc", "chronolet describe")
        window.press("C-u")
        complete(window, f"chronolet logs complete-{name[0]}", f"chronolet logs complete-{name}")
        complete(window, " -c ser", "-c server")
        window.press("C-u")
        window.write("chronolet get ")
        window.press("Tab", "Tab")
        for word in ("actors", "containers", "pods"):
            window.wait_for(word)
