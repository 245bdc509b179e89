"""gRPC calls to a plugin's socket, with errors converted to `PluginRefusal`.

Input: a socket, a request. Output: the response, or `PluginRefusal`. Next: `plugin_calls`, `lists`, `watcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

import grpc
import grpc.aio

from chronolet.adapters.sockets import grpc_sockets
from chronolet.adapters.sockets.paths import SocketError
from chronolet.ports.devices.plugins import PluginRefusal, RefusalKind
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as found

_KINDS: Final[dict[grpc.StatusCode, RefusalKind]] = {
    grpc.StatusCode.UNAVAILABLE: "away",
    grpc.StatusCode.DEADLINE_EXCEEDED: "late",
}

_WORDS: Final = {grpc.StatusCode.OK: "OK", grpc.StatusCode.CANCELLED: "Canceled"}


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name


class Method(NamedTuple):
    """A gRPC method: its path, and the decoder of its responses."""

    path: str
    read: Callable[[bytes], Any]


_PLUGIN = "/v1beta1.DevicePlugin/"
OPTIONS = Method(f"{_PLUGIN}GetDevicePluginOptions", api.DevicePluginOptions.FromString)
LIST_AND_WATCH = Method(f"{_PLUGIN}ListAndWatch", api.ListAndWatchResponse.FromString)
PREFERRED = Method(f"{_PLUGIN}GetPreferredAllocation", api.PreferredAllocationResponse.FromString)
ALLOCATE = Method(f"{_PLUGIN}Allocate", api.AllocateResponse.FromString)
PRE_START = Method(f"{_PLUGIN}PreStartContainer", api.PreStartContainerResponse.FromString)
INFO = Method("/pluginregistration.Registration/GetInfo", found.PluginInfo.FromString)
NOTIFY = Method(
    "/pluginregistration.Registration/NotifyRegistrationStatus", found.RegistrationStatusResponse.FromString
)


@contextmanager
def channel(socket: str) -> Iterator[grpc.Channel]:
    """Yield a channel that shares no connection with other channels; close it after the block. Raises PluginRefusal if
    the path is too long for a socket.
    """
    try:
        with grpc_sockets.channel(socket) as opened:
            yield opened
    except SocketError as error:
        raise PluginRefusal("failed", str(error)) from error


def ask(socket: str, method: Method, request: _Message, seconds: float, *, patient: bool = False) -> Any:
    """Make one call and return the decoded response. Raises PluginRefusal if the call fails. `patient`: wait up to
    `seconds` for a server that is not listening yet.
    """
    with channel(socket) as opened:
        call = opened.unary_unary(method.path, type(request).SerializeToString, method.read)
        try:
            return call(request, timeout=seconds, wait_for_ready=patient)
        except grpc.RpcError as error:
            raise refusal(error) from error


def refusal(error: grpc.RpcError) -> PluginRefusal:
    """Convert the error to a refusal with the text that the kubelet's client would report."""
    code, details = grpc.StatusCode.UNKNOWN, ""
    if isinstance(error, grpc.Call | grpc.aio.AioRpcError):
        code, details = error.code(), error.details() or ""
    return PluginRefusal(_KINDS.get(code, "failed"), f"rpc error: code = {word(code)} desc = {details}")


def word(code: grpc.StatusCode) -> str:
    """Return a status code's name as Go spells it, such as DeadlineExceeded."""
    if code in _WORDS:
        return _WORDS[code]
    return "".join(part.capitalize() for part in code.name.split("_"))
