"""A private S3-compatible service: moto's server, a real HTTP endpoint, with one bucket.

Input: a folder for its log. Output: the environment variables with its URL and its credentials. Next: tests of archives
in a bucket.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support.ports import free_port
from tests.support.scratch import wait_until

BUCKET = "logs"


class Service:
    """The service, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the AWS variables for a client of this service."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> Self:
        """Start the service with an empty bucket."""
        log = (self._folder / "moto.log").open("ab")
        argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        with log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log)
        wait_until(lambda: self.request("PUT", f"/{BUCKET}") == 200, "the S3 service")
        return self

    def request(self, method: str, path: str) -> int:
        """Send one request without a body; return the status, or 0 if the service cannot be reached."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def stop(self) -> None:
        """Kill the service."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """Run a service for the duration of the block."""
    running = Service(folder).start()
    try:
        yield running
    finally:
        running.stop()
