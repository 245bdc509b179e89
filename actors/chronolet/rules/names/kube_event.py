"""Names and namespaces of Event objects of the Kubernetes API. Pure.

Input: the involved object, and the time of the event. Output: names. Next: the correlator, the sinks.
Source: client-go's tools/record/event.go (makeEvent) and tools/record/util.
"""

from __future__ import annotations

import hashlib

from chronolet.rules.names.names import subdomain_problem

COMPONENT = "chronolet"
"""The reporting component of all events."""


def event_name(object_name: str, nanoseconds: int) -> str:
    """The event's name: the object's name and the time, or a UUID if that is not a valid name. Deterministic."""
    name = f"{object_name}.{nanoseconds:x}"
    return name if subdomain_problem(name) is None else uuid_of(name)


def event_namespace(namespace: str) -> str:
    """The namespace of an object's events: the object's, or `default` for a node, which has none."""
    return namespace or "default"


def uuid_of(text: str) -> str:
    """A UUID derived from a text by hashing it."""
    found = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-8{found[17:20]}-{found[20:]}"
