"""`chronolet history node`: prints the node's conditions over time, its load and its lag.

Input: a session, two moments. Output: two tables, or plain data. Next: `command`. `node_conditions` and `node_load`
record what is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet.cli.over_time.found import Found, Table, shown_time
from chronolet.cli.over_time.node_conditions import Condition, States
from chronolet.cli.over_time.node_conditions import Recorder as Conditions
from chronolet.cli.over_time.node_load import Part
from chronolet.cli.over_time.node_load import Recorder as Load
from chronolet.cli.over_time.reading import turns
from chronolet.cli.printing.axis import ROUND_DURATIONS
from chronolet.cli.session import Session
from chronolet.history.state import Folding
from chronolet.history.when import Located
from chronolet.image_gc.state import State as Images
from chronolet.keeper.state import State as Keeper
from chronolet.pleg.state import State as Pleg
from chronolet.qos.state import State as Qos

KINDS = ("pleg", "qos", "keeper", "image_gc")
_ABOUT = (*KINDS, "shard", "node")
"""The kinds of entities whose events may be about the node's conditions."""
_MOST_PARTS = 15
CONDITIONS = ("WHAT", "FROM", "UNTIL", "DETAIL")
LOAD = ("TIME", "ENTRIES", "STARTS", "LAG", "PROBE DELAY", "UNJUDGED", "SHORT OF", "IMAGE DISK")


def find(node: Session, first: Located, last: Located, names: Sequence[str]) -> Found:
    """Return the node's conditions and load during the time; `names` must be empty, or name the node."""
    folding = node.folding(*KINDS)
    conditions = Conditions(_states(folding), first.milliseconds)
    length = last.milliseconds - first.milliseconds
    step = next((one for one in ROUND_DURATIONS if length // one < _MOST_PARTS), ROUND_DURATIONS[-1])
    load = Load(first.milliseconds, last.milliseconds, step)
    for turn in turns(node, folding, first, last):
        load.take(turn.entry, turn.event, turn.at)
        if turn.entry.entity.partition("/")[0] in _ABOUT:
            conditions.take(_states(folding), turn.event(), turn.at)
    found = conditions.conditions()
    return Found(
        {"conditions": [_plain(one) for one in found], "load": [_plain_part(one) for one in load.parts]},
        (Table(CONDITIONS, [_row(one) for one in found]), Table(LOAD, [_load_row(one) for one in load.parts])),
        missing=[name for name in names if name != node.settings.node],
    )


def _states(folding: Folding) -> States:
    known = folding.states
    return States(
        known["pleg"].get("node", _EMPTY.pleg),
        known["qos"].get("node", _EMPTY.qos),
        known["keeper"].get("node", _EMPTY.keeper),
        known["image_gc"].get("node", _EMPTY.images),
    )


_EMPTY = States(Pleg(), Qos(), Keeper(), Images())


def _row(one: Condition) -> list[str]:
    return [one.what, shown_time(one.begin), shown_time(one.end), one.detail or "<none>"]


def _plain(one: Condition) -> dict[str, Any]:
    """Return the condition as plain data; times are milliseconds since the epoch."""
    until = {} if one.end is None else {"until": one.end}
    return {"what": one.what, "detail": one.detail, "from": one.begin, **until}


def _load_row(one: Part) -> list[str]:
    return [
        shown_time(one.begin),
        str(one.entries),
        str(one.starts),
        _duration(one.lag_milliseconds),
        _duration(one.probe_delay_milliseconds),
        str(one.unjudged_probes),
        ",".join(sorted(one.short_of)) or "<none>",
        "<unknown>" if one.disk_percent is None else f"{one.disk_percent}%",
    ]


def _duration(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}s"


def _plain_part(one: Part) -> dict[str, Any]:
    return {
        "from": one.begin,
        "until": one.end,
        "entries": one.entries,
        "containerStarts": one.starts,
        "lagMilliseconds": one.lag_milliseconds,
        "probeDelayMilliseconds": one.probe_delay_milliseconds,
        "unjudgedProbes": one.unjudged_probes,
        "shortOf": sorted(one.short_of),
    } | ({} if one.disk_percent is None else {"imageDiskPercent": one.disk_percent})
