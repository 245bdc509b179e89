"""Selects the Docker Engine that a command queries: by default the node agent's, which the log records.

Input: a session, the state of `pleg`. Output: settings with the engine's address; or a Failure that explains why the
engine lacks a container. Precedence: the `--docker` flag, the log, the environment. Next: `logs`, `exec`, `gc`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from chronolet.cli.errors import Failure
from chronolet.cli.options import given_as_flag
from chronolet.cli.session import Session
from chronolet.history.state import Moment
from chronolet.node.settings.settings import Settings
from chronolet.pleg.actor import NODE
from chronolet.pleg.state import State
from chronolet.ports.runtime.runtime import Runtime


class Engine(NamedTuple):
    """The engine to query, and `endpoint` and `engine_id` of the engine recorded in the log (empty if none is)."""

    settings: Settings
    """The command's settings; `docker` is the address of the engine to query."""
    endpoint: str
    engine_id: str

    def missing(self, runtime: Runtime, container_id: str, pod: str, more: str = "") -> Failure:
        """Return a Failure that explains why the engine lacks the container. Raises Refusal if it cannot be queried."""
        about, address = f"container {container_id[:12]} of pod {pod}", self.settings.docker
        found = runtime.engine().id
        if not self.engine_id or not found:
            return Failure(
                f"{about} is not in the Docker Engine at {address}: it was removed, or another engine has it; "
                "the log does not record the node agent's engine, specify it with --docker URL"
            )
        if found == self.engine_id:
            return Failure(f"{about} was removed from Docker{f', {more}' if more else ''}")
        node = f"node {self.settings.node} uses {self.endpoint} (engine id {self.engine_id})"
        remedy = (
            "start that engine again, or restart the node agent"
            if address == self.endpoint
            else f"omit --docker, or use --docker {self.endpoint}"
        )
        return Failure(f"{about} is not in the Docker Engine at {address} (engine id {found}); {node}: {remedy}")


def of_node(node: Session, moment: Moment) -> Engine:
    """Return the engine to query. `moment` must include the state of `pleg`."""
    state: State = moment.states["pleg"].get(NODE, State())
    named = given_as_flag("docker") or not state.endpoint
    settings = node.settings if named else msgspec.structs.replace(node.settings, docker=state.endpoint)
    return Engine(settings, state.endpoint, state.engine_id)
