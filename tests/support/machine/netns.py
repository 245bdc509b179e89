"""A network namespace of one's own, and code or commands inside it.

Input: a name. Output: commands, sockets and HTTP answers from within. A private dockerd lives in one, so that its
docker0 and its iptables rules cannot touch the machine's; a pod's host port is therefore open inside only.
"""

import ctypes
import http.client
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import msgspec

from tests.support.scratch import HANG_SECONDS

_CLONE_NEWNET = 0x40000000
T = TypeVar("T")

_libc = ctypes.CDLL(None, use_errno=True)


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an HTTP server said."""

    status: int
    body: bytes
    headers: dict[str, str]


class NetworkNamespace:
    """A named network namespace with its loopback up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = Path("/run/netns") / name

    def create(self) -> None:
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)

    def delete(self) -> None:
        """Remove it; no error when it is not there. Sockets still open inside keep it alive, unnamed."""
        if self.path.exists():
            subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def command(self, *argv: str) -> list[str]:
        """The argument list that runs argv inside. nsenter replaces itself, so the pid is argv's own.

        `ip netns exec` will not do: it mounts another /sys, in which dockerd finds no devices cgroup.
        """
        return ["nsenter", f"--net={self.path}", *argv]

    def run(self, *argv: str, timeout: float = HANG_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run to the end inside; the caller looks at the return code."""
        return subprocess.run(self.command(*argv), capture_output=True, text=True, timeout=timeout, check=False)

    def call(self, function: Callable[[], T]) -> T:
        """Run the function in a thread that has entered the namespace; its result or exception comes back.

        setns moves one thread only, and this one ends with the call: the test's own threads never leave theirs.
        """
        outcome: Future[T] = Future()

        def enter_and_run() -> None:
            try:
                self._enter()
                outcome.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                outcome.set_exception(error)

        threading.Thread(target=enter_and_run, name=f"in {self.name}").start()
        return outcome.result()

    def _enter(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
                code = ctypes.get_errno()
                raise OSError(code, f"setns into {self.path}: {os.strerror(code)}")
        finally:
            os.close(descriptor)

    def connect(self, port: int, host: str = "127.0.0.1", timeout: float = HANG_SECONDS) -> socket.socket:
        """A TCP connection opened inside. The socket stays there and can be used from any thread."""
        return self.call(lambda: socket.create_connection((host, port), timeout=timeout))

    def http(
        self,
        port: int,
        path: str = "/",
        *,
        host: str = "127.0.0.1",
        method: str = "GET",
        timeout: float = HANG_SECONDS,
    ) -> HttpAnswer:
        """One HTTP request from inside."""
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        connection.sock = self.connect(port, host, timeout)
        try:
            connection.request(method, path, headers={"Connection": "close"})
            response = connection.getresponse()
            return HttpAnswer(status=response.status, body=response.read(), headers=dict(response.getheaders()))
        finally:
            connection.close()
