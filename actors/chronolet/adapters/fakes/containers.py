"""The containers of the fake runtime.

Input: specs, programs. Output: the port's states. Next: `fakes.runtime`.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from chronolet.adapters.fakes.execs import Program
from chronolet.ports.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    ImageState,
    Notice,
    PortMapping,
    Refusal,
    SandboxSpec,
    State,
)


@dataclass
class Box:
    """One container. Mutable, because it represents the runtime's internal state."""

    id: str
    spec: SandboxSpec | ContainerSpec
    program: Program
    created_at: int
    state: State = "created"
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    oom_killed: bool = False
    error: str = ""
    ip: str = ""
    frozen: bool = False
    output: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def ports(self) -> Sequence[PortMapping]:
        return self.spec.ports if isinstance(self.spec, SandboxSpec) else ()


class FakeStream:
    """An open notice stream."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.notices: queue.SimpleQueue[Notice | Refusal | None] = queue.SimpleQueue()

    def close(self) -> None:
        self.notices.put(None)


def summary(box: Box) -> ContainerState:
    """Return the container's state as a listing shows it."""
    return ContainerState(
        id=box.id,
        name=box.spec.name,
        labels=box.spec.labels,
        state=box.state,
        image=box.spec.image,
        image_id=image_of(box.spec.image).id,
        created_at=box.created_at,
        sandbox_id=box.spec.sandbox_id if isinstance(box.spec, ContainerSpec) else "",
        host_network=isinstance(box.spec, SandboxSpec) and box.spec.host_network,
        detailed=False,
    )


def detail(box: Box) -> ContainerState:
    """Return the container's state as an inspection shows it."""
    return msgspec.structs.replace(
        summary(box),
        started_at=box.started_at,
        finished_at=box.finished_at,
        exit_code=box.exit_code,
        oom_killed=box.oom_killed,
        error=box.error,
        ip=box.ip,
        pid=int(box.id, 16) if box.state == "running" or box.frozen else 0,
        detailed=True,
    )


def image_of(reference: str) -> ImageState:
    """Return the image that `reference` names; its id and size are derived from the name."""
    return ImageState(id=f"sha256:{reference.encode().hex()}", size_bytes=len(reference))
