"""The agent's clock and that of its children step three hours ahead and back, by a shim that leaves monotonic clocks
alone. The clock of a whole machine is stepped by tests/setup/clock_checks.py.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from tests.attacks.clocks.clock_steps import check_steps
from tests.attacks.probed_pods import PERIOD
from tests.e2e.node import Node
from tests.support.scratch import HANG_SECONDS

_SHIM = Path(__file__).parents[2] / "support" / "shifted_clock.c"


def test_a_step_of_the_agents_clock_restarts_nothing(own_node: Node) -> None:
    library, clock = own_node.root / "shifted_clock.so", own_node.root / "clock"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, _SHIM], check=True, timeout=HANG_SECONDS)
    clock.write_bytes(bytes(8))

    def step(seconds: int) -> None:
        with clock.open("r+b") as file:
            file.write(struct.pack("q", seconds))

    own_node.agents_environ = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(clock)}
    check_steps(own_node, step, period=PERIOD, wait_for_loops=False)
