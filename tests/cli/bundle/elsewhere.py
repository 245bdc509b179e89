"""Runs commands as on another operating system, without Docker and Redis: `python elsewhere.py`.

Input: command lines as JSON on standard input. Output: the result of each as JSON.

Nothing here imports the tests' code, which needs Linux.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import io
import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

BLOCKED = frozenset(
    {
        "crypt",
        "curses",
        "docker",
        "fcntl",
        "google",
        "grp",
        "grpc",
        "hiredis",
        "nis",
        "obstore",
        "opentelemetry",
        "ossaudiodev",
        "prometheus_client",
        "pty",
        "pwd",
        "pykka",
        "readline",
        "redis",
        "requests",
        "resource",
        "spwd",
        "syslog",
        "termios",
        "tty",
        "urllib3",
    }
)
"""What is blocked: of the modules that other systems lack, and of those of the agent, Docker and Redis, these."""
_OS = (
    "chown",
    "chroot",
    "fork",
    "forkpty",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getloadavg",
    "getpgid",
    "getuid",
    "killpg",
    "mkfifo",
    "mknod",
    "openpty",
    "posix_fallocate",
    "posix_spawn",
    "pread",
    "sched_getaffinity",
    "sched_setaffinity",
    "sendfile",
    "setsid",
    "setuid",
    "statvfs",
    "sync",
    "uname",
)
_SIGNALS = ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGWINCH", "SIGALRM", "SIGQUIT")


class _Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"no module {name} on this machine", name=name)


def leave() -> None:
    """Take away what only Linux has. Modules that Python itself loaded at its start are gone, too."""
    for name in BLOCKED:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Blocker())
    for module, names in ((os, _OS), (signal, _SIGNALS), (socket, ("AF_UNIX",))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    socket.socket.connect = _no_connection  # type: ignore[method-assign]


def _no_connection(*arguments: Any) -> NoReturn:
    raise OSError(f"connected to {arguments[1:]}, expected no connection")


def run(words: list[str]) -> tuple[str, str, int]:
    """Run one command line and return its output, errors and exit status."""
    from chronolet.cli.main import status_of  # noqa: PLC0415 - only after `leave`

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = status_of(words, None)
    return _content(out), _content(err), status


def _content(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


if __name__ == "__main__":
    leave()
    sys.stdout.write(json.dumps([run(words) for words in json.load(sys.stdin)]))
