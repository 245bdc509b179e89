"""References: the fields with which an event, a signal or an effect names its subject. Pure.

`**ref` passes a reference to a message class, and mypy checks the names and types of its fields (PEP 589). References
are dictionaries, not nested structs: in the log, their fields are interleaved with the message's other fields, in the
order that each message class defines.
"""

from __future__ import annotations

from typing import TypedDict

from chronolet_schemas import container_gc, image_gc
from chronolet_schemas.prober import ProbeName


class PodRef(TypedDict):
    """One pod: `namespace/name` and its uid."""

    pod: str
    uid: str


class SandboxRef(PodRef):
    """One attempt of a pod's sandbox."""

    attempt: int


class ContainerOfPod(PodRef):
    """A container of a pod, without a particular attempt."""

    container: str


class AttemptRef(ContainerOfPod):
    """One attempt of a container, which the runtime may not have created yet."""

    attempt: int


class ContainerRef(AttemptRef):
    """One container that the runtime has created; `id` is its id there."""

    id: str


class ProbeRef(ContainerOfPod):
    """A probe of a container."""

    probe: ProbeName


class RunRef(TypedDict):
    """One run of a container: if the runtime starts a container again, the id stays the same. `started_at` in
    milliseconds.
    """

    attempt: int
    id: str
    started_at: int


class EffectRef(TypedDict):
    """The effect that a result belongs to."""

    subject: str
    intent: str


class VictimRef(TypedDict):
    """An object that a run of the container collector removes, and the rule that selects it."""

    run: int
    what: container_gc.What
    id: str
    name: str
    pod: str
    uid: str
    rule: container_gc.Rule


class CandidateRef(TypedDict):
    """An image that a run of the image collector removes, and the reason."""

    run: int
    id: str
    name: str
    size_bytes: int
    reason: image_gc.Reason
