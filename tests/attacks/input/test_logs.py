"""A container writes as fast as it can: the agent, and commands that read the container's log, need little memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.attacks.attacked import Attacked
from tests.e2e.node import pod, shell

MIB = 1 << 20
HANG = 120
LINE = "x" * 1000
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
with open(sys.argv[1], "w") as peak:
    peak.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


@pytest.mark.parametrize("size", [50 * MIB, pytest.param(1000 * MIB, marks=pytest.mark.long)])
def test_a_flood_of_output_is_read_in_little_memory(attacked: Attacked, size: int) -> None:
    name = f"flood-{size // MIB}"
    script = f"yes {LINE} | head -c {size}; echo; echo all done; trap 'exit 0' TERM; sleep 3600 & wait"
    before = attacked.peak_bytes()
    attacked.write(f"{name}.yaml", pod(name, shell("app", f"while ! [ -e /tmp/go ]; do sleep 0.1; done; {script}")))
    attacked.wait_until_running(name)
    container = attacked.running(name)["app"]["Id"]

    with attacked.running_command("logs", "-f", name) as follower:
        begun: Any = attacked.docker.exec_create(container, ["touch", "/tmp/go"])
        attacked.docker.exec_start(begun["Id"])
        assert follower.stdout is not None
        assert follower.stdout.readline() == f"{LINE}\n".encode()
        # The test stops reading: output that the command cannot write must not accumulate in the command's memory.
        attacked.journal.wait_for(
            "the end of the flood", lambda: attacked.docker.logs(container, tail=1) == b"all done\n", HANG
        )
        assert attacked.peak_bytes(follower.pid) < 200 * MIB

    status, peak, shown = _measured(attacked, "logs", "--tail=5", name)
    assert (status, shown.splitlines()[-1]) == (0, b"all done")
    assert len(shown.splitlines()) == 5
    assert peak < 200 * MIB
    status, peak, shown = _measured(attacked, "logs", name)
    assert (status, shown.splitlines()[-1]) == (0, b"all done")
    assert len(shown) > 20 * MIB
    assert peak < 200 * MIB

    assert attacked.peak_bytes() - before < 100 * MIB
    (attacked.folder / f"{name}.yaml").unlink()
    attacked.wait_until_gone(name)
    attacked.assert_well()


def _measured(attacked: Attacked, *arguments: str) -> tuple[int, int, bytes]:
    """Run a command; return its exit status, its peak memory in bytes, and its output.

    A small process starts it, because Linux counts the parent's memory at the fork towards the command's peak.
    """
    output, peak = attacked.root / "output", attacked.root / "peak"
    command = [sys.executable, "-c", MEASURE, str(peak), sys.executable, "-m", "chronolet.cli", *arguments]
    with output.open("wb") as out:
        status = subprocess.run(command, stdout=out, env=attacked.environ, check=False).returncode
    return status, int(peak.read_text()) * 1024, output.read_bytes()
