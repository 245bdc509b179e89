"""Convert an engine's error replies and broken exchanges to the port's `Refusal`. Pure.

Input: a status with its body, or the transport's exception. Output: `Refusal` with the engine's message on one line.
"""

from __future__ import annotations

import re

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

# Texts in replies with status 500 that identify a cause outside the engine.
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


# Permanent reasons why a command cannot start. Other reasons (no descriptors, processes or memory left) are not the
# command's fault.
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

# Ids of network endpoints (in brackets); ids of container layers and of runc's folders (in paths).
_IN_BRACKETS = re.compile(r" \([0-9a-f]{64}\)")
_IN_PATHS = re.compile(r"(?<=/)[0-9a-f]{64}(?:-init)?(?=[/\": ]|$)|(?<=/runc-process)[0-9]+")


class _ErrorReply(msgspec.Struct):
    message: str = ""


_decoder = msgspec.json.Decoder(_ErrorReply)


def one_line(text: str) -> str:
    """Replace every run of white space with one space."""
    return " ".join(text.split())


def stable(text: str) -> str:
    """Remove the ids that the engine generates for each attempt, so that the same problem always yields the same
    message: KubeEvent counting and back-offs compare messages.
    """
    return _IN_PATHS.sub("...", _IN_BRACKETS.sub("", text))


def kind_of(words: str, otherwise: RefusalKind) -> RefusalKind:
    """Return the refusal kind for the engine's error message; `otherwise` if no known text occurs in it."""
    low = words.lower()
    return next((kind for marker, kind in _BY_WORDS if marker in low), otherwise)


def is_about_the_command(words: str) -> bool:
    """Whether the engine's message for a command that did not start blames the command."""
    low = words.lower()
    return any(marker in low for marker in _ABOUT_THE_COMMAND)


def refused(status: int, body: bytes) -> Refusal:
    """Convert a reply with a status of 400 or above."""
    try:
        message = stable(one_line(_decoder.decode(body).message))
    except msgspec.DecodeError:
        message = one_line(body.decode("utf-8", "replace"))[:500]
    message = message or f"the engine answered {status} without a message"
    return Refusal(_BY_STATUS.get(status) or kind_of(message, "failed"), message)


def broken(error: Exception, socket_path: str, call: str) -> Refusal:
    """Convert the error of a call without a complete reply (cannot connect, timed out, cut off) to a `Refusal`."""
    causes = list(_chain(error))
    if any(isinstance(cause, HttpTimeoutError | TimeoutError) for cause in causes) and not any(
        isinstance(cause, NewConnectionError) for cause in causes
    ):
        return Refusal("timeout", f"Docker at {socket_path}: no answer in time to {call}")
    for cause in causes:
        if isinstance(cause, PermissionError):
            return Refusal(
                "denied", f"Docker at {socket_path}: permission denied; run as root or join the group docker"
            )
        if isinstance(cause, FileNotFoundError | ConnectionRefusedError):
            return Refusal("unavailable", f"Docker at {socket_path}: cannot connect ({cause.strerror}); is it running?")
    why = next(
        (cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), "incomplete reply"
    )
    return Refusal("unavailable", f"Docker at {socket_path}: {call} was cut off ({why})")


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, outermost first. urllib3 passes some causes only as exception arguments."""
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
