"""The machine's address, with and without a route."""

import subprocess
import sys

import pytest

from tests.support.scratch import HANG_SECONDS

_PROGRAM = """
from pathlib import Path
from chronolet.adapters.machine.host import LinuxHost
print(LinuxHost(Path()).address())
"""


@pytest.mark.parametrize(
    ("interfaces", "address"),
    [
        ("", "127.0.0.1"),
        ("ip link add b0 type bridge; ip addr add 10.9.8.7/24 dev b0; ip link set b0 up;", "10.9.8.7"),
    ],
)
def test_a_machine_without_a_route_has_an_address(interfaces: str, address: str) -> None:
    """The machine is simulated by a network namespace, and its host name cannot be resolved."""
    script = f'hostname no-such-name.invalid; ip link set lo up; {interfaces} exec "$0" -c "$1"'
    command = ["unshare", "--net", "--uts", "sh", "-c", script, sys.executable, _PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=True)
    assert found.stdout.strip() == address
