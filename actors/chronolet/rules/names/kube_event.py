"""What an Event object of the Kubernetes API is called, and where it lies. Pure.

Input: the object it is about, and when it happened. Output: names. Next: the correlator, the sinks.
Source: client-go's tools/record/event.go (makeEvent) and tools/record/util.
"""

from __future__ import annotations

import hashlib

from chronolet.rules.names.names import subdomain_problem

COMPONENT = "chronolet"
"""Who reports all events of a node."""


def event_name(object_name: str, nanoseconds: int) -> str:
    """The object's name and the moment; a UUID where that would be no name. Always the same for the same."""
    name = f"{object_name}.{nanoseconds:x}"
    return name if subdomain_problem(name) is None else uuid_of(name)


def event_namespace(namespace: str) -> str:
    """Where events of an object of this namespace lie; those of a node, which has none, lie in `default`."""
    return namespace or "default"


def uuid_of(text: str) -> str:
    """A UUID that is made of a text."""
    found = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-8{found[17:20]}-{found[20:]}"
