"""Lists images for `get images`: first detection, last use, the containers that use them, and pinning.

Input: the image collector's state from the log. Output: images as plain data, and their rows. Next: `get`,
`gc`.
"""

from __future__ import annotations

from typing import Any

from chronolet.cli.errors import not_found
from chronolet.cli.get import pod_rows
from chronolet.cli.get.query import Found, Query
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.history.state import Folding, Moment
from chronolet.image_gc.planning.ages import last_used
from chronolet.image_gc.state import Record, State

Object = dict[str, Any]

HEAD = ("IMAGE ID", "TAGS", "SIZE", "FIRST DETECTED", "LAST USED", "USED BY", "PINNED")
_SHORT_ID = 12
_STEP = 1000
_UNITS = ("B", "kB", "MB", "GB", "TB")


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    everything = of(state_of(node.state("image_gc")))
    chosen = [one for one in everything if not query.names or any(is_meant(one, name) for name in query.names)]
    missing = [not_found("images", name) for name in query.names if not any(is_meant(one, name) for one in chosen)]
    chosen = list(query.sorted(chosen))
    found = Found(
        items=chosen,
        names=[f"image/{one['id']}" for one in chosen],
        head=HEAD,
        rows=[row(one, node.now()) for one in chosen],
    )
    return found, missing


def state_of(moment: Moment | Folding) -> State:
    """Return the state of the image collector at that moment."""
    state: State = moment.states["image_gc"].get("node", State())
    return state


def of(state: State) -> list[Object]:
    """Return all images, ordered by first detection."""
    records = sorted(state.records.values(), key=lambda one: (one.first_detected, one.image.id))
    return [_plain(record, state.looked_at) for record in records]


def _plain(record: Record, looked_at: int) -> Object:
    image, used = record.image, last_used(record, looked_at)
    return {
        "id": image.id,
        "names": list(image.names),
        "sizeBytes": image.size_bytes,
        "firstDetected": ages.rfc3339(record.first_detected) if record.first_detected else None,
        "lastUsed": ages.rfc3339(used) if used else None,
        "inUse": record.used,
        "usedBy": list(image.users),
        "usedByCount": image.user_count,
        "pinned": image.pinned,
    }


def is_meant(image: Object, name: str) -> bool:
    """Return whether `name` is a name of the image, its id, or a prefix of the id."""
    return name in image["names"] or image["id"] == name or image["id"].rpartition(":")[2].startswith(name)


def row(image: Object, now: ages.Now) -> list[str]:
    """Return the cells of one image. An image without a tag is shown with its digest references."""
    tags = [one for one in image["names"] if "@" not in one] or image["names"]
    return [
        short(image["id"]),
        _first(tags, len(tags)),
        size(image["sizeBytes"]),
        _ago(image["firstDetected"], now),
        "now" if image["inUse"] else _ago(image["lastUsed"], now, "never"),
        _first(image["usedBy"], image["usedByCount"]),
        "yes" if image["pinned"] else "no",
    ]


def _ago(moment: str | None, now: ages.Now, never: str = "<unknown>") -> str:
    return f"{ages.ago(pod_rows.milliseconds(moment), now)} ago" if moment else never


def _first(found: list[str], count: int) -> str:
    """Format the first two names, and how many of the `count` names are not shown; `<none>` if there are none."""
    shown = found[:2]
    more = count - len(shown)
    return (",".join(shown) + (f" and {more} more" if more else "")) or "<none>"


def short(image_id: str) -> str:
    """Shorten an image's id as Docker does."""
    return image_id.rpartition(":")[2][:_SHORT_ID]


def size(count: int) -> str:
    """Format a number of bytes as Docker does: 13.3kB, 1.2GB."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.3g}{_UNITS[unit]}"
