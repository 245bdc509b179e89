"""Lists cgroups for `get cgroups`: their desired and actual values.

Input: the state of `qos`, the machine's cgroups. Output: cgroups as plain data, and rows. Next: `get`. Desired
values come from the log, actual values from the kernel of the machine on which the command runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chronolet.cli.errors import not_found
from chronolet.cli.get.query import Found, Query
from chronolet.cli.session import Session
from chronolet.ports.machine.cgroups import CgroupTree
from chronolet.qos.state import State
from chronolet.qos.tree import wanted as desired_tree
from chronolet.rules.resources.cgroups import Cgroup, uid_of

Object = dict[str, Any]

_COLUMNS = (
    ("CPU", ("cpu.shares", "cpu.weight")),
    ("QUOTA", ("cpu.cfs_quota_us", "cpu.max 1")),
    ("MEMORY", ("memory.limit_in_bytes", "memory.max")),
    ("PIDS", ("pids.max",)),
)
"""Column titles, each with its files in cgroup v1 and v2. A number after a file's name selects one word in it."""
_WIDE = (
    ("PERIOD", ("cpu.cfs_period_us", "cpu.max 2")),
    ("MEMORY MIN", ("memory.min",)),
    ("MEMORY LOW", ("memory.low",)),
    ("MEMORY HIGH", ("memory.high",)),
)
_UNLIMITED = 1 << 60


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    everything = of(node)
    chosen = [one for one in everything if not query.names or query.names_one_of(one["name"], one["pod"], one["uid"])]
    known = {one[field] for one in chosen for field in ("name", "pod", "uid")}
    missing = [not_found("cgroups", name) for name in query.names if name not in known]
    wide = query.output == "wide"
    found = Found(
        items=chosen,
        names=[f"cgroup/{one['name']}" for one in chosen],
        head=head(wide=wide),
        rows=[row(one, wide=wide) for one in chosen],
    )
    return found, missing


def of(node: Session) -> list[Object]:
    """Return all cgroups of the tree, parents before children; an empty list if the node manages no cgroups."""
    state: State = node.state("qos").states["qos"].get("node", State())
    known = state.node
    tree = node.services.cgroups(node.settings).tree(known.driver) if known is not None else None
    shown = (_cgroup(state, one, tree) for one in desired_tree(state))
    return [one for one in shown if one is not None]


def _cgroup(state: State, cgroup: Cgroup, tree: CgroupTree | None) -> Object | None:
    """Return one cgroup as plain data; None for a container's cgroup that no longer exists."""
    uid = uid_of(cgroup.path[-2] if cgroup.is_containers else cgroup.path[-1])
    share = state.shares.get(uid) if uid else None
    found = tree.actual(cgroup) if tree is not None else {}
    if cgroup.is_containers and not any(actual for actual, _ in found.values()):
        return None
    names = {container: name for name, container in share.containers.items()} if share else {}
    return {
        "name": "/".join(cgroup.path),
        "pod": share.pod if share else "",
        "uid": uid or "",
        "container": names.get(cgroup.path[-1], ""),
        "values": {file: {"wanted": desired, "found": actual} for file, (actual, desired) in found.items()},
    }


def head(*, wide: bool) -> list[str]:
    """Return the column names."""
    return ["NAME", "POD", *(title for title, _ in _columns(wide=wide))]


def row(one: Object, *, wide: bool) -> list[str]:
    """Return the cells of one cgroup, with its name indented according to its depth."""
    depth = one["name"].count("/")
    name = "  " * depth + (one["container"] or one["name"].rpartition("/")[2])
    return [name, one["pod"] or "", *(_cell(one["values"], files) for _, files in _columns(wide=wide))]


def _columns(*, wide: bool) -> Sequence[tuple[str, tuple[str, ...]]]:
    return (*_COLUMNS, *_WIDE) if wide else _COLUMNS


def _cell(values: Mapping[str, Mapping[str, str]], files: Sequence[str]) -> str:
    for file in files:
        name, _, word = file.partition(" ")
        if name in values:
            desired, actual = (_word(values[name][side], word) for side in ("wanted", "found"))
            return f"{_shown(desired)}/{_shown(actual)}"
    return ""


def _word(text: str, number: str) -> str:
    """Return the word with this number, or the whole text if the number is empty."""
    return "".join(text.split()[int(number) - 1 : int(number)]) if number else text


def _shown(text: str) -> str:
    """Return the value as printed: `max` for every spelling of an absent limit, `?` for a missing value."""
    if text == "-1" or (text.isdigit() and int(text) >= _UNLIMITED):
        return "max"
    return text or "?"
