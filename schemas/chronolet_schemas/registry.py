"""Which class a type name in the log or a mailbox means.

Each schema module registers its events and commands by `registered`; the kind is the module's name, or that of the
folder it stands in; the type name is `<kind>.<Class>@<version>`. Comes in: classes at
import. Goes out: lookups for `codec`. Next: `codec`, `upcasting`.
"""

from __future__ import annotations

from typing import TypeVar

from chronolet_schemas.envelope import Command, Event

SCHEMA = 2
"""Grows with every release that writes an event type or version the release before could not read.

A shard's hash keeps the newest number that wrote it; a process with an older one does not acquire it (DESIGN 3.8).
"""

_T = TypeVar("_T", bound=type[Event] | type[Command])

_classes: dict[str, type[Event | Command]] = {}
_tags: dict[type, str] = {}


def registered(cls: _T) -> _T:
    """Enter an event or command class under its type name; as a decorator."""
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
    """The type name with version, `pod.ContainerStarted@1`; KeyError for a class that is not registered."""
    return _tags[cls]


def class_of(name: str) -> type[Event | Command] | None:
    """The class of a type name without version, None if this release does not know it."""
    return _classes.get(name)


def all_classes() -> tuple[type[Event | Command], ...]:
    """Every registered class, ordered by type name: for whoever has to go over all words, as the golden files do."""
    return tuple(_classes[name] for name in sorted(_classes))
