"""How people name what they mean: `pods web db`, `pod/web pod/db`, `po/web`.

Comes in: words of the command line. Goes out: a type and names, or a usage error. Next: the commands about pods.
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
}


def types_and_names(words: Sequence[str], allowed: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The one type of these words, in the plural, and the names, each once."""
    type_ = TYPES.get(words[0].partition("/")[0], "")
    bare = words[0] in TYPES
    if not bare and "/" not in words[0]:
        raise click.UsageError(f"found {words[0]!r}, expected {' or '.join(allowed)}, as TYPE NAME or TYPE/NAME.")
    names = tuple(dict.fromkeys(words[1:] if bare else (_name(word, type_) for word in words)))
    if type_ not in allowed:
        raise click.UsageError(f"found {words[0]!r}, expected {' or '.join(allowed)}, as TYPE NAME or TYPE/NAME.")
    if not all(names) or (bare and type_ == "pods" and any("/" in name for name in names)):
        raise click.UsageError(f"found {' '.join(words)!r}, expected pod NAME or pod/NAME.")
    return type_, names


def pod_name(word: str) -> str:
    """`web` and `pod/web` alike."""
    return _name(word, "pods") if "/" in word else word


def _name(word: str, type_: str) -> str:
    kind, slash, name = word.partition("/")
    if not slash or not name or TYPES.get(kind) != type_:
        raise click.UsageError(f"found {word!r}, expected TYPE/NAME such as pod/web.")
    return name
