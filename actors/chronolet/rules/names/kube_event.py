"""Names and namespaces of Event objects of the Kubernetes API. Pure.

Input: the involved object, and the time of the event. Output: names. Next: the correlator, the sinks.
Source: client-go's tools/record/event.go (makeEvent) and tools/record/util.
"""

from __future__ import annotations

import hashlib

from chronolet.rules.names.names import subdomain_problem

COMPONENT = "chronolet"
"""The reporting component of all Event objects."""


def event_name(object_name: str, nanoseconds: int) -> str:
    """Return the name of an Event object: the involved object's name and the time, or a UUID if these do not form a
    valid name. The result is deterministic.
    """
    name = f"{object_name}.{nanoseconds:x}"
    return name if subdomain_problem(name) is None else uuid_of(name)


def event_namespace(namespace: str) -> str:
    """Return the namespace of the Event objects about an object: its own, or `default` for a node, which has none."""
    return namespace or "default"


def uuid_of(text: str) -> str:
    """Return a UUID that is derived from a hash of `text`."""
    found = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-8{found[17:20]}-{found[20:]}"
