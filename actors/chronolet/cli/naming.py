"""Parses resource arguments: `pods web db`, `pod/web pod/db`, `po/web`, `pods,events`.

Input: command-line arguments. Output: types and names, or a usage error. Next: the commands about pods.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

TYPES = {
    **dict.fromkeys(("pod", "pods", "po"), "pods"),
    **dict.fromkeys(("container", "containers"), "containers"),
    **dict.fromkeys(("image", "images"), "images"),
    **dict.fromkeys(("device", "devices"), "devices"),
    **dict.fromkeys(("actor", "actors"), "actors"),
    **dict.fromkeys(("cgroup", "cgroups", "cg"), "cgroups"),
    **dict.fromkeys(("event", "events", "ev"), "events"),
    **dict.fromkeys(("secret", "secrets"), "secrets"),
    **dict.fromkeys(("node", "nodes", "no"), "nodes"),
    **dict.fromkeys(("probe", "probes"), "probes"),
}


def types_and_names(words: Sequence[str], allowed: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the single type, in the plural, and its names without duplicates (empty: all). Several types are a usage
    error.
    """
    found = asked_types(words, allowed)
    if len(found) > 1:
        raise click.UsageError(f"found {' '.join(words)!r}, expected a single type: {' or '.join(allowed)}.")
    return found[0]


def asked_types(words: Sequence[str], allowed: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return each type once, in the plural, with its names (empty: all). Parses `pods,events` and `pod/web event/x`."""
    named: dict[str, tuple[str, ...]] = {}
    if "/" in words[0]:
        for word in words:
            type_ = _allowed(word.partition("/")[0], word, allowed)
            named[type_] = (*named.get(type_, ()), _name(word, type_))
    else:
        for kind in words[0].split(","):
            named[_allowed(kind, words[0], allowed)] = tuple(words[1:])
    if not all(all(names) and not _has_slash(type_, names) for type_, names in named.items()):
        raise click.UsageError(f"found {' '.join(words)!r}, expected pod NAME or pod/NAME.")
    return tuple((type_, tuple(dict.fromkeys(names))) for type_, names in named.items())


def _allowed(kind: str, word: str, allowed: Sequence[str]) -> str:
    type_ = TYPES.get(kind, "")
    if type_ not in allowed:
        raise click.UsageError(f"found {word!r}, expected {' or '.join(allowed)}, as TYPE NAME or TYPE/NAME.")
    return type_


def _has_slash(type_: str, names: Sequence[str]) -> bool:
    return type_ == "pods" and any("/" in name for name in names)


def pod_name(word: str) -> str:
    """Return the name of a pod given as `web` or `pod/web`."""
    return _name(word, "pods") if "/" in word else word


def _name(word: str, type_: str) -> str:
    kind, slash, name = word.partition("/")
    if not slash or not name or TYPES.get(kind) != type_:
        raise click.UsageError(f"found {word!r}, expected TYPE/NAME such as pod/web.")
    return name
