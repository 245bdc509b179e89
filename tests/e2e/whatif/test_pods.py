"""What-if answers about pods equal live runs with the same thresholds or back-off, up to the first difference."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.e2e.probes.probed_pods import ENOUGH_SECONDS
from tests.e2e.whatif.asking import answer, lived, with_change

CRASHES = "exit 3"


@pytest.fixture(params=["livenessProbe", "startupProbe"])
def probed(own_node: Node, request: pytest.FixtureRequest) -> tuple[Node, str]:
    """A node on which each probe of two pods fails: of `few` two times before the container is stopped, of `many` four
    times; and the probe's name.
    """
    own_node.start(0, "--probe-overload-protection", "false")
    for name, threshold in (("few", 2), ("many", 4)):
        probe: dict[str, Any] = {
            "exec": {"command": ["false"]},
            "periodSeconds": 1,
            "timeoutSeconds": ENOUGH_SECONDS,
            "failureThreshold": threshold,
        }
        own_node.write(f"{name}.yaml", pod(name, {**shell("app"), request.param: probe}))
    for name in ("few", "many"):
        own_node.journal.wait_for_event(pods.ContainerStarted, 120, pod=f"default/{name}", attempt=1)
    return own_node, request.param


def test_thresholds_of_probes(probed: tuple[Node, str]) -> None:
    node, probe = probed
    for asked, live, threshold in (("few", "many", 4), ("many", "few", 2)):
        found = answer(node, "--set", f"pod/{asked}/app.{probe}.failureThreshold={threshold}")
        exact, alive = with_change(found, f"pod/default/{asked}/app"), lived(node, f"pod/default/{live}/app")
        assert exact == alive[: len(exact)]
        name = probe.removesuffix("Probe").title()
        last = f"stopped: {name}Failed, grace period 2 s" if threshold == 2 else f"{name} probe failed, 2 of 4"
        assert exact[-1] == last
        assert found["certainty"] == "estimate"
        assert all(row["subject"] == f"pod/default/{asked}/app" for row in found["rows"])


def test_the_limit_of_the_back_off(own_node: Node) -> None:
    own_node.start()
    own_node.write("longer.yaml", pod("longer", shell("app", CRASHES)))
    own_node.journal.wait_for_event(pods.RestartScheduled, 120, pod="default/longer", attempt=1)
    own_node.kill9()
    own_node.journal.catch_up()
    end = f"#{own_node.journal.lines[-1].entry.position.n}"
    own_node.start(0, "--max-container-restart-period", "9s")
    own_node.write("shorter.yaml", pod("shorter", shell("app", CRASHES)))
    own_node.journal.wait_for_event(pods.RestartScheduled, 120, pod="default/shorter", attempt=1)
    found = answer(own_node, "--set", "max-container-restart-period=9s", "--to", end)
    exact = with_change(found, "pod/default/longer/app")
    assert exact == lived(own_node, "pod/default/shorter/app")[: len(exact)]
    assert exact[-1] == "restart after a back-off of 9 s, the next after 9 s"
    happened = [row["recorded"] for row in found["rows"] if row["recorded"] is not None]
    assert happened[-1] == "restart after a back-off of 10 s, the next after 20 s"
