"""What an engine's refusals and broken exchanges mean, as the port's `Refusal`. Pure.

Comes in: a status with its body, or what the transport raised. Goes out: `Refusal` with the engine's words in one line.
"""

from __future__ import annotations

import re
import socket

import msgspec
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import TimeoutError as HttpTimeoutError

from chronolet.ports.runtime.runtime import Refusal, RefusalKind

FIRST_ERROR_STATUS = 400

_BY_STATUS: dict[int, RefusalKind] = {
    400: "invalid",
    401: "denied",
    403: "denied",
    404: "not_found",
    409: "conflict",
    503: "unavailable",
}

# What the engine says, with status 500, when it is not itself that failed.
_BY_WORDS: tuple[tuple[str, RefusalKind], ...] = (
    ("no space left on device", "no_space"),
    ("disk quota exceeded", "no_space"),
    ("transport is closing", "unavailable"),
    ("ttrpc: closed", "unavailable"),
    ("containerd.sock: connect:", "unavailable"),
    ("error reading from server: eof", "unavailable"),
    ("net/http: tls handshake timeout", "timeout"),
    ("i/o timeout", "timeout"),
    ("context deadline exceeded", "timeout"),
    ("pull access denied", "denied"),
    ("no basic auth credentials", "denied"),
    ("unauthorized", "denied"),
    ("manifest unknown", "not_found"),
)


# Why a command cannot be begun that will be no other the next time. What else keeps an engine from beginning it (no
# descriptors, processes or memory left) says nothing of the command.
_ABOUT_THE_COMMAND = (
    "no such file or directory",
    "executable file not found",
    "permission denied",
    "not a directory",
    "is a directory",
    "exec format error",
    "argument list too long",
    "too many levels of symbolic links",
    "file name too long",
)

# An endpoint of a network that could not be had; layers of a container and runc's own folders.
_IN_BRACKETS = re.compile(r" \([0-9a-f]{64}\)")
_IN_PATHS = re.compile(r"(?<=/)[0-9a-f]{64}(?:-init)?(?=[/\": ]|$)|(?<=/runc-process)[0-9]+")


class _Said(msgspec.Struct):
    message: str = ""


_decoder = msgspec.json.Decoder(_Said)


def one_line(text: str) -> str:
    """Text with every run of white space made one blank."""
    return " ".join(text.split())


def stable(text: str) -> str:
    """The engine's words without the ids that it makes up for each try: the same trouble is the same message, which
    KubeEvents count and back-offs are told by.
    """
    return _IN_PATHS.sub("...", _IN_BRACKETS.sub("", text))


def kind_of(words: str, otherwise: RefusalKind) -> RefusalKind:
    """The kind that the engine's words tell, where its status says little."""
    low = words.lower()
    return next((kind for marker, kind in _BY_WORDS if marker in low), otherwise)


def is_about_the_command(words: str) -> bool:
    """Whether the engine's words for a command that it did not begin blame the command."""
    low = words.lower()
    return any(marker in low for marker in _ABOUT_THE_COMMAND)


def refused(status: int, body: bytes) -> Refusal:
    """A reply of 400 or above."""
    try:
        message = stable(one_line(_decoder.decode(body).message))
    except msgspec.DecodeError:
        message = one_line(body.decode("utf-8", "replace"))[:500]
    message = message or f"the engine answered {status} without a word"
    return Refusal(_BY_STATUS.get(status) or kind_of(message, "failed"), message)


def broken(error: Exception, socket_path: str, call: str) -> Refusal:
    """No reply, or half of one."""
    causes = list(_chain(error))
    if any(isinstance(cause, HttpTimeoutError | socket.timeout) for cause in causes) and not any(
        isinstance(cause, NewConnectionError) for cause in causes
    ):
        return Refusal("timeout", f"Docker at {socket_path}: no answer in time to {call}")
    for cause in causes:
        if isinstance(cause, PermissionError):
            return Refusal(
                "denied", f"Docker at {socket_path}: permission denied; run as root or join the group docker"
            )
        if isinstance(cause, FileNotFoundError | ConnectionRefusedError):
            return Refusal("unavailable", f"Docker at {socket_path}: nobody listens ({cause.strerror}); is it running?")
    why = next((cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), "half a reply")
    return Refusal("unavailable", f"Docker at {socket_path}: {call} was cut off ({why})")


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what it wraps, the outermost first: urllib3 keeps causes as arguments, too."""
    found: list[BaseException] = []
    todo: list[BaseException] = [error]
    while todo:
        current = todo.pop(0)
        if any(current is one for one in found):
            continue
        found.append(current)
        inner = [current.__cause__, current.__context__]
        if isinstance(current, HTTPError):
            inner += [argument for argument in current.args if isinstance(argument, BaseException)]
        todo += [one for one in inner if one is not None]
    return found
