"""Decide whether a plugin may register. Pure.

Input: what a plugin sends with Register. Output: None, or the refusal; the path of its socket. Next: `decider`, and the
server, which must answer the plugin immediately. Source: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go, api.go.
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
"""Registrations of a resource allowed in quick succession; further ones count only every PAUSE_SECONDS."""
PAUSE_SECONDS = 30

MOST_REFUSED = 64
"""Number of distinct refusals that are counted separately. All others share one counter."""
_THE_OTHERS = ""
_LONGEST = 320
"""Maximum length of plugin-supplied text that is repeated, in characters; longer than any resource name."""
LONGEST_SOCKET = 107
"""Maximum length of a socket path in bytes, set by the kernel."""

Reason = Literal["unsupported_version", "invalid_resource_name", "invalid_endpoint", "too_many_plugins"]


class Refusal(NamedTuple):
    """Why a plugin may not register. `message` goes to the plugin, in the kubelet's words where the kubelet has any."""

    reason: Reason
    message: str


def refusal(*, versions: Sequence[str], resource: str, endpoint: str, folder: str, limit: int = 0) -> Refusal | None:
    """Return None if the plugin may register. The version is checked first.

    `limit` is the maximum number of plugins if already reached, else 0.
    """
    if SUPPORTED_VERSION not in versions:
        requested = _quoted(*versions) if len(versions) == 1 else f"[{_quoted(*versions)}]"
        supported = f"[{_quoted(SUPPORTED_VERSION)}]"
        return Refusal(
            "unsupported_version",
            f"requested API version {requested} is not supported by kubelet. Supported version is {supported}",
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
    """Return the name under which a refusal is counted; `known` are the names counted so far."""
    name = f"{reason} {shortened(resource)}"
    return name if name in known or len(known) < MOST_REFUSED else _THE_OTHERS


def all_counted_as(resource: str) -> Sequence[str]:
    """The names of all separately counted refusals of this resource."""
    return [f"{reason} {resource}" for reason in get_args(Reason)]


def socket_of(endpoint: str, folder: str) -> str | None:
    """Return the absolute path of a plugin's socket; None if it is outside `folder` or is the registry's own socket.

    `/name.sock` means a file in the folder: the kubelet joins folder and endpoint, so plugins that strip the folder
    from their socket's path but keep the slash work there.
    """
    path = PurePosixPath(folder, endpoint)
    if path.parent == PurePosixPath("/") and not path.is_relative_to(folder):
        path = PurePosixPath(folder, path.name)
    inside = path.is_relative_to(folder) and path != PurePosixPath(folder) and ".." not in path.parts
    return str(path) if inside and "\0" not in endpoint and path.name != REGISTRY_SOCKET else None


def shortened(text: str) -> str:
    """Truncate text to a bounded length."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _quoted(*texts: str) -> str:
    return " ".join(json.dumps(shortened(text), ensure_ascii=False) for text in texts)
