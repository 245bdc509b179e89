"""`chronolet history images`: prints which images were there when, who used them, and why they were removed.

Input: a session, two moments, names of images. Output: a table, or plain data. Next: `command`. `image_uses` records
what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.get.images import is_meant, short, state_of
from chronolet.cli.over_time.found import Found, Table, shown_time
from chronolet.cli.over_time.image_uses import Image, Recorder
from chronolet.cli.over_time.reading import turns
from chronolet.cli.session import Session
from chronolet.history.when import Located

HEAD = ("IMAGE", "ID", "WHAT", "FROM", "UNTIL", "WHY")
KINDS = ("image_gc", "pod")


def find(node: Session, first: Located, last: Located, names: Sequence[str]) -> Found:
    """Return these images (none: all) that were there during the time. The session is at the first moment."""
    folding = node.folding(*KINDS)
    recorder = Recorder(state_of(folding), folding.states["pod"], first.milliseconds)
    for turn in turns(node, folding, first, last, KINDS):
        kind, _, key = turn.entry.entity.partition("/")
        if kind == "pod":
            recorder.take_pod(key, folding.states["pod"].get(key), turn.at)
        else:
            recorder.take_images(state_of(folding), turn.event(), turn.at)
    chosen = [one for one in recorder.images() if not names or _is_named(one, names)]
    return Found(
        {"images": [_plain(one) for one in chosen]},
        (Table(HEAD, [row for one in chosen for row in _rows(one)]),),
        missing=[name for name in names if not any(_is_named(one, (name,)) for one in chosen)],
    )


def _is_named(image: Image, names: Sequence[str]) -> bool:
    return any(is_meant({"id": image.id, "names": image.names}, name) for name in names)


def _rows(image: Image) -> Iterator[list[str]]:
    """Yield a row for the image itself, one for each use and one for each refused removal."""
    head = [next(iter(image.names), "<none>"), short(image.id)]
    yield [*head, "present", shown_time(image.begin), shown_time(image.end), image.removed or "<none>"]
    for use in image.uses:
        yield [*head, f"used by {use.user}", shown_time(use.begin), shown_time(use.end), "<none>"]
    for refusal in image.refusals:
        yield [*head, "not removed", shown_time(refusal.at), shown_time(refusal.at), refusal.error]


def _plain(image: Image) -> dict[str, Any]:
    """Return the image as plain data; times are milliseconds since the epoch, 0 if unknown."""
    found: dict[str, Any] = {"id": image.id, "names": list(image.names), "from": image.begin}
    if image.end is not None:
        found |= {"until": image.end, "removed": image.removed}
    uses = [
        {"user": one.user, "from": one.begin} | ({} if one.end is None else {"until": one.end}) for one in image.uses
    ]
    refusals = [{"at": one.at, "error": one.error} for one in image.refusals]
    return found | {"uses": uses, "notRemoved": refusals}
