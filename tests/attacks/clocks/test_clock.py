"""The wall clock of the agent and its children is set three hours ahead and back; a shim leaves their monotonic clocks
unchanged. tests/setup/clock_checks.py does the same with the clock of a whole machine.
"""

from __future__ import annotations

from tests.attacks.clocks.clock_steps import check_steps
from tests.attacks.probed_pods import PERIOD
from tests.e2e.clock_shim import clock_shim
from tests.e2e.node import Node


def test_a_step_of_the_agents_clock_restarts_nothing(own_node: Node) -> None:
    own_node.agent_environ, set_ahead = clock_shim(own_node.root)
    check_steps(own_node, set_ahead, period=PERIOD, wait_for_loops=False)
