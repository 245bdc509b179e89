"""Decide whether a plugin may register. Pure.

Input: the fields of a plugin's Register call. Output: None, or the refusal; the path of its socket. Next:
`registration`, and `registrar`, which must answer the plugin immediately. Source:
pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go, api.go.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from chronolet.rules.resources.extended_resources import is_extended

SUPPORTED_VERSION = "v1beta1"
REGISTRY_SOCKET = "kubelet.sock"

_MAX_TEXT = 320
"""Maximum length of plugin-supplied text in messages, in characters; longer than any resource name."""
MAX_SOCKET_PATH = 107
"""Maximum length of a socket path in bytes, as limited by Linux."""

Reason = Literal["unsupported_version", "invalid_resource_name", "invalid_endpoint", "too_many_plugins"]


class Refusal(NamedTuple):
    """Why a plugin may not register. `message` is sent to the plugin; it is the kubelet's text where the kubelet has
    one.
    """

    reason: Reason
    message: str


def refusal(*, versions: Sequence[str], resource: str, endpoint: str, folder: str, limit: int = 0) -> Refusal | None:
    """Return why the plugin may not register; None if it may. The version is checked first.

    `limit` is the maximum number of plugins if it has been reached, else 0.
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
    if (length := len(socket.encode(errors="surrogateescape"))) > MAX_SOCKET_PATH:
        return Refusal(
            "invalid_endpoint",
            f"the endpoint {_quoted(endpoint)} is invalid: the path of its socket in {folder} has {length} bytes, "
            f"expected at most {MAX_SOCKET_PATH}",
        )
    if limit:
        return Refusal(
            "too_many_plugins",
            f"the resource {_quoted(resource)} cannot be registered: {limit} device plugins are registered, "
            f"the most that --max-device-plugins allows",
        )
    return None


def socket_of(endpoint: str, folder: str) -> str | None:
    """Return the absolute path of a plugin's socket; None if it is outside `folder` or is the registry's own socket.

    `/name.sock` means a file in the folder: the kubelet joins folder and endpoint, so it accepts plugins that strip the
    folder from their socket's path but keep the slash.
    """
    path = PurePosixPath(folder, endpoint)
    if path.parent == PurePosixPath("/") and not path.is_relative_to(folder):
        path = PurePosixPath(folder, path.name)
    inside = path.is_relative_to(folder) and path != PurePosixPath(folder) and ".." not in path.parts
    return str(path) if inside and "\0" not in endpoint and path.name != REGISTRY_SOCKET else None


def shortened(text: str) -> str:
    """Truncate text to `_MAX_TEXT` characters, and mark the cut with `...`."""
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _quoted(*texts: str) -> str:
    return " ".join(json.dumps(shortened(text), ensure_ascii=False) for text in texts)
