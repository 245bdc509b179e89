"""`chronolet history devices`: prints who held which device when, and from whom it was taken over.

Input: a session, two moments, names of devices. Output: a table, or plain data. Next: `command`. `device_tenures`
records what is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet.cli.get.devices import is_named, state_of
from chronolet.cli.over_time.device_tenures import Holder, Recorder, Tenure
from chronolet.cli.over_time.found import Found, Table, shown_time
from chronolet.cli.over_time.reading import turns
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.history.when import Located

HEAD = ("RESOURCE", "ID", "POD", "CONTAINER", "FROM", "UNTIL", "ENDED", "BEFORE")


def find(node: Session, first: Located, last: Located, names: Sequence[str]) -> Found:
    """Return the tenures of these devices (none: all) that overlap the time. The session is at the first moment."""
    folding = node.folding("devices")
    recorder = Recorder(state_of(folding))
    for turn in turns(node, folding, first, last, ("devices",)):
        recorder.take(state_of(folding), turn.event(), turn.at)
    items = [_plain(one) for one in recorder.tenures()]
    chosen = [(one, plain) for one, plain in zip(recorder.tenures(), items, strict=True) if _is_wanted(plain, names)]
    known = [plain for _, plain in chosen]
    return Found(
        {"tenures": known},
        (Table(HEAD, [_row(one) for one, _ in chosen]),),
        missing=[name for name in names if not any(is_named(one, (name,)) for one in known)],
    )


def _is_wanted(plain: dict[str, Any], names: Sequence[str]) -> bool:
    return not names or is_named(plain, names)


def _row(one: Tenure) -> list[str]:
    return [
        one.resource,
        one.device,
        one.holder.pod,
        one.holder.container,
        shown_time(one.begin),
        shown_time(one.end),
        one.ended or "<none>",
        _before(one),
    ]


def _before(one: Tenure) -> str:
    """Return from whom the device was taken over, and how long it was free in between."""
    if one.former is None:
        return "<unknown>"
    who = f"{one.former.pod}/{one.former.container}"
    if one.former_end is None:
        return f"{who}, passed on"
    return f"{who}, free for {ages.human(max(one.begin - one.former_end, 0))}"


def _plain(one: Tenure) -> dict[str, Any]:
    """Return the tenure as plain data; times are milliseconds since the epoch."""
    found: dict[str, Any] = {"resource": one.resource, "id": one.device, **_holder(one.holder), "from": one.begin}
    if one.end is not None:
        found |= {"until": one.end, "ended": one.ended}
    if one.former is not None:
        found["before"] = _holder(one.former) | ({"until": one.former_end} if one.former_end is not None else {})
    return found


def _holder(one: Holder) -> dict[str, Any]:
    namespace, _, pod = one.pod.partition("/")
    return {"namespace": namespace, "pod": pod, "uid": one.uid, "container": one.container}
