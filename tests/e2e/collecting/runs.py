"""Plans and runs of the collectors, as requested by tests.

Input: a node. Output: plans, commands in mailboxes, jobs of agents that are killed in the middle of a run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas import codec, container_gc, image_gc, registry
from chronolet_schemas.envelope import Command
from chronolet_schemas.keys import Shard
from tests.e2e.fault_injection.agent_farm import AgentJob
from tests.e2e.fault_injection.points import Point
from tests.e2e.node import Node
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy
from tests.support.scratch import wait_until


def gc_plan(node: Node, small_engine: PrivateDocker, *words: str) -> tuple[dict[str, Any], list[str]]:
    """Run `gc plan` once both collectors have a policy; return its output and all its calls to the engine."""
    node.journal.wait_for_event(image_gc.PolicySet)
    node.journal.wait_for_event(container_gc.PolicySet)
    proxy = DockerProxy(small_engine.host, node.root / "plan.sock")
    try:
        result = node.chronolet(
            "--redis", node.environ["CHRONOLET_REDIS"], "gc", "plan", "--docker", proxy.host, "-o", "json", *words
        )
    finally:
        proxy.close()
    assert result.status == 0, result
    plan: dict[str, Any] = json.loads(result.out)
    return plan, proxy.calls


def ids(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    return [one["id"] for one in objects]


def killed_job(node: Node, place: str, nth: int = 3, **more: Any) -> AgentJob:
    """Return a job of an agent that collects all unpinned images regardless of age, with a kill the `nth` time that
    `place` is reached.
    """
    node.environ["CHRONOLET_MINIMUM_IMAGE_TTL_DURATION"] = "0s"
    job = node.job(point=Point(place=place, nth=nth), **more)
    flags = {name.removeprefix("CHRONOLET_").lower(): value for name, value in node.environ.items() if "_GC_" in name}
    flags |= {"image_usage_period": "100ms", "minimum_image_ttl_duration": "0s", "pinned_images": "chronolet/*"}
    job.flags.update(flags)
    return job


def send_command(node: Node, kind: str, command: Command) -> None:
    """Send a command to a collector as `gc run` does, without waiting for its result."""
    name, data = registry.type_of(type(command)), codec.encode(command)

    def sent() -> bool:
        with suppress(StoreUnreachable):  # it may have arrived; the request id makes it idempotent
            node.journal.store.send(Shard(kind), name, f"{kind}/node", command.request, data)
            return True
        return False

    wait_until(sent, f"{name} to be sent to {kind}")
