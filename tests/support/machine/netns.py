"""A network namespace in which tests run code and commands.

Input: a name. Output: commands, sockets and HTTP responses from inside. A private dockerd runs in such a namespace, so
that its docker0 and its iptables rules do not affect the machine's. Therefore a pod's host port can be reached only
from inside.
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
    """A response from an HTTP server."""

    status: int
    body: bytes
    headers: dict[str, str]


class NetworkNamespace:
    """A named network namespace whose loopback interface is up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = Path("/run/netns") / name

    def create(self) -> None:
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)

    def delete(self) -> None:
        """Remove the namespace if it exists. Open sockets inside keep it alive without a name."""
        if self.path.exists():
            subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def command(self, *argv: str) -> list[str]:
        """Return a command that runs `argv` inside. nsenter replaces itself, so the pid is that of `argv`.

        `ip netns exec` does not work: it mounts another /sys, in which dockerd finds no devices cgroup.
        """
        return ["nsenter", f"--net={self.path}", *argv]

    def run(self, *argv: str, timeout: float = HANG_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run a command inside; the caller checks the return code."""
        return subprocess.run(self.command(*argv), capture_output=True, text=True, timeout=timeout, check=False)

    def call(self, function: Callable[[], T]) -> T:
        """Run the function in a thread inside the namespace; return its result or raise its exception.

        setns moves only that thread, which ends with the call: the test's own threads stay in their namespace.
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
        """Open a TCP connection inside the namespace. The socket stays in it and can be used from any thread."""
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
        """Make one HTTP request from inside."""
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        connection.sock = self.connect(port, host, timeout)
        try:
            connection.request(method, path, headers={"Connection": "close"})
            response = connection.getresponse()
            return HttpAnswer(status=response.status, body=response.read(), headers=dict(response.getheaders()))
        finally:
            connection.close()
