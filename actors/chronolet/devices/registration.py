"""Which plugins may register. Pure.

Comes in: what a plugin says of itself. Goes out: None, or why it may not; the path of its socket. Next: `decider`, and
the server that must answer the plugin at once. Source: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go, api.go.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, get_args

from chronolet.rules.resources.extended_resources import is_extended

SUPPORTED_VERSION = "v1beta1"
REGISTRY_SOCKET = "kubelet.sock"

AT_ONCE = 10
"""How many registrations of a resource may come in quick succession before they count every PAUSE_SECONDS only."""
PAUSE_SECONDS = 30

MOST_REFUSED = 64
"""So many different refusals are counted each by itself. All that are beyond them count as one more."""
_THE_OTHERS = ""
_LONGEST = 320
"""Characters of what a plugin says of itself, where it is told again: more than the longest name of a resource."""
LONGEST_SOCKET = 107
"""Bytes of a socket's path, by the kernel."""

Reason = Literal["unsupported_version", "invalid_resource_name", "invalid_endpoint", "too_many_plugins"]


class Refusal(NamedTuple):
    """Why a plugin may not register; `message` is for the plugin, in the kubelet's words where it has any."""

    reason: Reason
    message: str


def refusal(*, versions: Sequence[str], resource: str, endpoint: str, folder: str, limit: int = 0) -> Refusal | None:
    """None if the plugin may register. The version is looked at first.

    `limit` is the largest number of plugins if it is reached already, else 0.
    """
    if SUPPORTED_VERSION not in versions:
        said = _quoted(*versions) if len(versions) == 1 else f"[{_quoted(*versions)}]"
        supported = f"[{_quoted(SUPPORTED_VERSION)}]"
        return Refusal(
            "unsupported_version",
            f"requested API version {said} is not supported by kubelet. Supported version is {supported}",
        )
    if not is_extended(resource):
        return Refusal("invalid_resource_name", f"the ResourceName {_quoted(resource)} is invalid")
    socket = socket_of(endpoint, folder)
    if socket is None:
        return Refusal(
            "invalid_endpoint",
            f"the endpoint {_quoted(endpoint)} is invalid: expected the name of a socket in {folder} "
            f"other than {REGISTRY_SOCKET}",
        )
    if (length := len(socket.encode(errors="surrogateescape"))) > LONGEST_SOCKET:
        return Refusal(
            "invalid_endpoint",
            f"the endpoint {_quoted(endpoint)} is invalid: the path of its socket in {folder} has {length} bytes, "
            f"expected at most {LONGEST_SOCKET}",
        )
    if limit:
        return Refusal(
            "too_many_plugins",
            f"the resource {_quoted(resource)} cannot be registered: {limit} device plugins are registered, "
            f"the most that --max-device-plugins allows",
        )
    return None


def counted_as(resource: str, reason: Reason, known: Collection[str]) -> str:
    """The name under which a refusal is counted, where those in `known` are counted already."""
    name = f"{reason} {shortened(resource)}"
    return name if name in known or len(known) < MOST_REFUSED else _THE_OTHERS


def all_counted_as(resource: str) -> Sequence[str]:
    """The names of all refusals of this resource by itself."""
    return [f"{reason} {resource}" for reason in get_args(Reason)]


def socket_of(endpoint: str, folder: str) -> str | None:
    """The absolute path of a plugin's socket; None if it is not a file below `folder`, or is the registry's own.

    `/name.sock` is a file in the folder: the kubelet joins folder and endpoint, and plugins that cut the folder off
    their socket's path without the last slash work there.
    """
    path = PurePosixPath(folder, endpoint)
    if path.parent == PurePosixPath("/") and not path.is_relative_to(folder):
        path = PurePosixPath(folder, path.name)
    inside = path.is_relative_to(folder) and path != PurePosixPath(folder) and ".." not in path.parts
    return str(path) if inside and "\0" not in endpoint and path.name != REGISTRY_SOCKET else None


def shortened(text: str) -> str:
    """The text, or its beginning; of a beginning, the same."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _quoted(*texts: str) -> str:
    return " ".join(json.dumps(shortened(text), ensure_ascii=False) for text in texts)
