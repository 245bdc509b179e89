"""Maps type names in the log or a mailbox to classes.

Each schema module registers its events and commands with `registered`. The kind is the name of the module, or of the
folder that contains it; the type name is `<kind>.<Class>@<version>`. A lookup imports the module of its kind, so a
reader loads only the kinds that it decodes. Input: classes at import. Output: lookups. Next: `codec`, `upcasting`.
"""

from __future__ import annotations

import importlib
from typing import TypeVar

from chronolet_schemas.envelope import Command, Event

SCHEMA = 2
"""Incremented by every release that writes an event type or version that the previous release cannot read.

A shard's hash stores the highest number of any process that wrote to it; a process with a lower number cannot acquire
the shard.
"""

RESHARDED = 2
"""The number stored in the hashes of a kind's shards when their count changes: releases below it would fold and route
by the count of the log's first event (docs/adr/0043).
"""

KINDS = frozenset(
    (
        "container_gc",
        "devices",
        "image_gc",
        "keeper",
        "kernel",
        "kube_events",
        "manifests",
        "pleg",
        "pod",
        "prober",
        "qos",
    )
)
"""The schema modules of this release that register classes."""

_T = TypeVar("_T", bound=type[Event] | type[Command])

_classes: dict[str, type[Event | Command]] = {}
_tags: dict[type, str] = {}


def registered(cls: _T) -> _T:
    """Register an event or command class under its type name (a decorator). Raises ValueError for a duplicate."""
    name = f"{_kind(cls)}.{cls.__name__}"
    if name in _classes:
        message = f"{name} is registered twice: by {_classes[name]!r} and {cls!r}"
        raise ValueError(message)
    _classes[name] = cls
    _tags[cls] = f"{name}@{cls.VERSION}"
    return cls


def _kind(cls: type) -> str:
    package, _, module = cls.__module__.partition(".")
    return module.partition(".")[0] if package == "chronolet_schemas" else cls.__module__.rpartition(".")[2]


def type_of(cls: type[Event | Command]) -> str:
    """Return the type name with version, `pod.ContainerStarted@1`. Raises KeyError for an unregistered class."""
    return _tags[cls]


def class_of(name: str) -> type[Event | Command] | None:
    """Return the class with this type name, which contains no version; None if this release does not know it."""
    found = _classes.get(name)
    if found is None and (kind := name.partition(".")[0]) in KINDS:
        importlib.import_module(f"chronolet_schemas.{kind}")
        found = _classes.get(name)
    return found


def all_classes() -> tuple[type[Event | Command], ...]:
    """Return all registered classes, ordered by type name."""
    return tuple(_classes[name] for name in sorted(_classes))
