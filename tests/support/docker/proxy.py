"""A proxy in front of a Docker Engine that injects faults: it hangs, delays, refuses or loses calls, cuts and mutes
streams.

Input: an engine's socket. Output: a socket whose calls are forwarded to the engine, except those with a fault. A call's
name is `METHOD /path?query`; a fault applies to calls whose name matches its regular expression (`re.search`). Each
connection serves one call, so that everything after its head is passed on unchanged, including upgraded connections.
Next: tests pass `proxy.host` to an agent or a runtime instead of the engine's.
"""

from __future__ import annotations

import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from tests.support import scratch

_KIND = "proxy"
_SLICE_SECONDS = 0.02
_PIECE = 65536

Muted = Callable[[], bool]


@dataclass(eq=False)
class Fault:
    """A fault that affects matching calls until it is lifted. `met` contains the affected calls."""

    kind: Literal["hang", "delay", "refuse", "drop", "swallow", "mute"]
    pattern: re.Pattern[str]
    seconds: float = 0.0
    status: int = 500
    message: str = ""
    met: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def lift(self) -> None:
        """End the fault; hanging calls continue."""
        self.over.set()


class DockerProxy:
    """The proxy, which listens on `host` until it is closed."""

    def __init__(self, engine: str, path: Path) -> None:
        self.host = f"unix://{path}"
        self.calls: list[str] = []
        """All calls so far, in order."""
        self._engine = engine.removeprefix("unix://")
        self._faults: list[Fault] = []
        self._open: dict[_Call, str] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._thread = threading.Thread(target=self._accept, name="docker proxy", daemon=True)
        self._thread.start()

    # -- faults ---------------------------------------------------------------------------------------------------

    def hang(self, pattern: str) -> Fault:
        """Keep matching calls from reaching the engine until the fault is lifted."""
        return self._set(Fault("hang", re.compile(pattern)))

    def delay(self, pattern: str, seconds: float) -> Fault:
        """Forward matching calls to the engine `seconds` later."""
        return self._set(Fault("delay", re.compile(pattern), seconds=seconds))

    def refuse(self, pattern: str, status: int = 500, message: str = "out of order") -> Fault:
        """Answer matching calls with this error; they do not reach the engine."""
        return self._set(Fault("refuse", re.compile(pattern), status=status, message=message))

    def drop(self, pattern: str) -> Fault:
        """Close the connections of matching calls before the calls reach the engine."""
        return self._set(Fault("drop", re.compile(pattern)))

    def swallow(self, pattern: str) -> Fault:
        """Let the engine execute matching calls, but close the connection instead of sending the response."""
        return self._set(Fault("swallow", re.compile(pattern)))

    def mute(self, pattern: str = "/events") -> Fault:
        """Discard the content of matching streams, both open and new ones."""
        return self._set(Fault("mute", re.compile(pattern)))

    def cut(self, pattern: str = "/events") -> int:
        """Close the connections of matching calls in progress; return their number."""
        with self._lock:
            found = [call for call, name in self._open.items() if re.search(pattern, name)]
        for call in found:
            call.end()
        return len(found)

    def under_way(self, pattern: str) -> int:
        """Return the number of matching calls in progress."""
        with self._lock:
            return sum(bool(re.search(pattern, name)) for name in self._open.values())

    def _set(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    # -- forwarding ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all calls and threads."""
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for fault in self._faults:
            fault.lift()
        self.cut("")
        scratch.wait_until(lambda: not self._open, "the end of the proxy's calls")

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="docker proxy call", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        call = _Call(client)
        with self._lock:
            self._open[call] = ""
        try:
            if self._closing.is_set() or not (name := call.read_head()):
                return
            with self._lock:
                self.calls.append(name)
                self._open[call] = name
            if self._may_pass(call, name):
                call.connect(self._engine)
                if self._closing.is_set():
                    return  # the call was not connected yet when all calls were cut
                call.relay(swallow=bool(self._met("swallow", name)), muted=lambda: bool(self._met("mute", name)))
        except (OSError, ValueError):
            pass  # the engine is gone or ended during its response, or the client disconnected
        finally:
            with self._lock:
                del self._open[call]
            call.close()

    def _may_pass(self, call: _Call, name: str) -> bool:
        """Return whether the call may be forwarded, after waiting while it is delayed or hangs."""
        if (fault := self._met("drop", name)) is not None:
            return False
        if (fault := self._met("refuse", name)) is not None:
            call.answer(fault.status, fault.message)
            return False
        if (fault := self._met("delay", name)) is not None:
            fault.over.wait(fault.seconds)
        while (fault := self._met("hang", name)) is not None:
            while not fault.over.wait(_SLICE_SECONDS):
                if call.left():
                    return False
        return True

    def _met(self, kind: str, name: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.kind == kind and not fault.over.is_set() and fault.pattern.search(name):
                    fault.met.append(name)
                    return fault
        return None


class _Call:
    """A client's connection, and the corresponding connection to the engine."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._engine: socket.socket | None = None
        self._head = b""
        self._rest = b""

    def read_head(self) -> str:
        """Read the head; return the call's name, or an empty string if there is none."""
        data = b""
        while b"\r\n\r\n" not in data:
            if not (piece := self._client.recv(_PIECE)):
                return ""
            data += piece
        head, _, self._rest = data.partition(b"\r\n\r\n")
        self._head = _one_call(head)
        return head.split(b"\r\n", 1)[0].decode().rpartition(" ")[0]

    def left(self) -> bool:
        """Return whether the client has hung up."""
        with suppress(BlockingIOError):
            return self._client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        return False

    def answer(self, status: int, message: str) -> None:
        """Reply with an error in the engine's place."""
        body = msgspec.json.encode({"message": message})
        head = f"HTTP/1.1 {status} Fault\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)

    def connect(self, engine: str) -> None:
        self._engine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._engine.connect(engine)
        self._engine.sendall(self._head + self._rest)

    def relay(self, *, swallow: bool, muted: Muted) -> None:
        """Pass on bytes until either side ends."""
        up = threading.Thread(target=self._send_up, name="docker proxy upward", daemon=True)
        up.start()
        for piece in self._pieces(muted):
            if not swallow:
                self._client.sendall(piece)
        self.end()
        up.join()

    def _send_up(self) -> None:
        assert self._engine is not None
        with suppress(OSError):
            while piece := self._client.recv(_PIECE):
                self._engine.sendall(piece)
            self._engine.shutdown(socket.SHUT_WR)

    def _pieces(self, muted: Muted) -> Iterator[bytes]:
        """Yield the engine's response: a chunked response in whole chunks, without muted ones."""
        assert self._engine is not None
        with self._engine.makefile("rb") as reader:
            head = b""
            while (line := reader.readline()) != b"\r\n":
                if not line:
                    return  # the engine was killed, or the call was cut, before the head was complete
                head += line
            yield head + b"\r\n"
            if b"transfer-encoding: chunked" not in head.lower():
                while piece := reader.read1(_PIECE):
                    yield piece
                return
            while size := reader.readline():
                chunk = size + reader.read(int(size, 16) + 2)
                if size.strip() == b"0" or not muted():
                    yield chunk

    def end(self) -> None:
        """End both connections and wake their readers. Thread-safe."""
        for one in (self._client, self._engine):
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close both sockets; called by the serving thread when it has finished."""
        for one in (self._client, self._engine):
            if one is not None:
                one.close()


def _one_call(head: bytes) -> bytes:
    """Return the head to send to the engine, which closes the connection after its response unless it is upgraded."""
    lines = head.split(b"\r\n")
    if any(line.lower().startswith(b"upgrade:") for line in lines):
        return head + b"\r\n\r\n"
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


@contextmanager
def docker_proxy(engine: str) -> Iterator[DockerProxy]:
    """Run a proxy in front of the engine at this host."""
    scratch.sweep(_KIND, shutil.rmtree)
    folder = scratch.create(_KIND)
    proxy = DockerProxy(engine, folder / "sock")
    try:
        yield proxy
    finally:
        proxy.close()
        shutil.rmtree(folder)
