"""Shows where one start spent its time: the output of `chronolet trace` for the last pod that a part has started.

Input: an agent, a position of its log. Output: text; empty if nothing was started after that position. Next: `pods`.
"""

from __future__ import annotations

import os
import subprocess
import sys

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import pod, registry
from chronolet_schemas.envelope import Position
from tests.bench.kernel.child import REPOSITORY
from tests.bench.pods.agent import NODE, Agent

_STARTED = registry.type_of(pod.ContainerStarted)


def end_of_log(agent: Agent) -> Position:
    """Return the log's last position. Called before a part is run."""
    store = RedisStore(agent.url, NODE)
    try:
        return store.last()
    finally:
        store.close()


def last_start(agent: Agent, after: Position) -> str:
    """Return the trace of the last pod that started a container after the position `after`; empty if there is none."""
    store = RedisStore(agent.url, NODE)
    try:
        started = [one.entity for one in store.scan(after) if one.type == _STARTED]
    finally:
        store.close()
    if not started:
        return ""
    _, namespace, name = started[-1].split("/")
    environ = os.environ | {
        "CHRONOLET_REDIS": agent.url,
        "CHRONOLET_ROOT_DIR": str(agent.state),
        "CHRONOLET_HOSTNAME_OVERRIDE": NODE,
    }
    command = [sys.executable, "-m", "chronolet.cli", "trace", f"pod/{name}", "-n", namespace]
    result = subprocess.run(
        agent.in_its_network(command), check=True, cwd=REPOSITORY, env=environ, stdout=subprocess.PIPE, text=True
    )
    return result.stdout
