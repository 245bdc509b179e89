"""Lists actors for `get actors`: owner, progress and contents of each shard.

Input: a node's shard hashes, leases, snapshots and states. Output: shards as plain data, and rows. Next: `get`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from chronolet.cli.errors import not_found
from chronolet.cli.get.query import Found, Query
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.members import Survey
from chronolet.kernel.storage.store import Head, StoreBroken, StoreUnreachable, owner_of
from chronolet.node.settings.settings import ALL_ACTORS
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard

Object = dict[str, Any]

HEAD = ("NAME", "OWNER", "HOST", "EPOCH", "VERSION", "LAG", "WAITING", "ENTITIES", "AGE", "MOVES", "SNAPSHOT")
_PAGE = 10_001


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    everything = of(node)
    chosen = [one for one in everything if not query.names or one["name"] in query.names or one["kind"] in query.names]
    _note_refusals(chosen)
    known = {one[field] for one in chosen for field in ("name", "kind")}
    missing = [not_found("actors", name) for name in query.names if name not in known]
    found = Found(
        items=chosen,
        names=[f"actor/{one['name']}" for one in chosen],
        head=HEAD,
        rows=[row(one, node.now()) for one in chosen],
    )
    return found, missing


def of(node: Session) -> list[Object]:
    """Return all shards, in the order of the kinds."""
    kinds = node.services.actors(ALL_ACTORS)
    usual = {kind.name: kind.shards for kind in kinds}
    router = Router({kind.name: kind for kind in kinds}, {**usual, **node.store.layout().counts})
    states = node.state(*ALL_ACTORS).states
    shards = [shard for kind in kinds for shard in router.shards_of(kind.name)]
    heads, alive, last = node.store.heads(shards), node.store.alive(), node.store.last()
    survey = node.store.survey(())
    mail = node.store.wait(last, {shard: heads[shard].mail_cursor for shard in shards}, _PAGE, 1).mail
    refusals = _refusals(node, alive)
    counts, lags = dict.fromkeys(shards, 0), _lags(node, router, heads)
    for kind in kinds:
        for key in states[kind.name]:
            counts[router.shard_for(kind.name, key)] += 1
    return [
        _shard(node, shard, heads[shard], alive)
        | _owner(heads[shard], survey)
        | {"lag": lags[shard], "waiting": len(mail.get(shard, ())), "entities": counts[shard]}
        | {"refusedBy": refusals.get(shard.kind, [])}
        for shard in shards
    ]


def _refusals(node: Session, alive: Mapping[str, str]) -> Mapping[str, list[Object]]:
    """Return for each kind the live processes that may not host it, with their reasons. They only inform."""
    sites = node.services.sites(node.settings)
    try:
        found = sites.refusals()
    except (StoreUnreachable, StoreBroken):
        return {}
    finally:
        sites.close()
    by_kind: dict[str, list[Object]] = {}
    for process, refused in sorted(found.items()):
        for kind in refused.kinds if process in alive else ():
            by_kind.setdefault(kind, []).append({"process": process, "reason": refused.reason})
    return by_kind


def _note_refusals(shown: Sequence[Object]) -> None:
    """Print a note for each process that may not host some of these kinds, after the command's output."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in shown:
        for refusal in one["refusedBy"]:
            named = kinds.setdefault((refusal["process"], refusal["reason"]), [])
            if one["kind"] not in named:
                named.append(one["kind"])
    for (process, reason), named in kinds.items():
        text = f"note: process {process} must not host {', '.join(named)}: {reason}"
        click.get_current_context().call_on_close(lambda text=text: click.echo(text, err=True))


def _lags(node: Session, router: Router, heads: Mapping[Shard, Head]) -> dict[Shard, int]:
    """Return each shard's lag: the number of log entries that it subscribes to but has not consumed yet."""
    lags = dict.fromkeys(heads, 0)
    for entry in node.store.scan(min(head.log_cursor for head in heads.values())):
        for shard, _ in router.route(entry, heads):
            lags[shard] += entry.position > heads[shard].log_cursor
    return lags


def _owner(head: Head, survey: Survey) -> Object:
    """Return where the owner runs and whether it drains; `host` is empty if the owner is of an older release."""
    owner = owner_of(head.token)
    member = survey.members.get(owner)
    return {"host": member.host if member is not None else "", "draining": owner in survey.drained}


def _shard(node: Session, shard: Shard, head: Head, alive: Mapping[str, str]) -> Object:
    epoch, _, owner = head.token.partition(":")
    snapshot = node.store.read_snapshots([shard]).get(shard)
    return {
        "name": str(shard),
        "kind": shard.kind,
        "shard": shard.index or 0,
        "owner": owner,
        "ownerAlive": owner in alive,
        "ownerInfo": alive.get(owner, ""),
        "epoch": int(epoch) if epoch.isdigit() else 0,
        "ownedSince": head.acquired_at if owner else 0,
        "moves": head.moves,
        "version": head.version,
        "logCursor": str(head.log_cursor),
        "snapshot": str(snapshot.position) if snapshot else "",
        "schema": head.schema,
    }


def row(one: Object, now: int) -> list[str]:
    """Return the cells of one shard."""
    return [
        one["name"],
        _owner_cell(one),
        one["host"] or "<none>",
        str(one["epoch"]),
        str(one["version"]),
        str(one["lag"]),
        str(one["waiting"]),
        str(one["entities"]),
        ages.ago(one["ownedSince"], now) if one["ownedSince"] else "<none>",
        str(one["moves"]),
        _snapshot(one["snapshot"], now),
    ]


def _owner_cell(one: Object) -> str:
    owner = one["owner"]
    if not owner:
        return "<none>"
    if not one["ownerAlive"]:
        return f"{owner} (dead)"
    return f"{owner} (draining)" if one["draining"] else str(owner)


def _snapshot(position: str, now: int) -> str:
    if not position:
        return "<none>"
    at = Position.parse(position)
    return f"#{at.n} ({ages.ago(at.milliseconds, now)} ago)"
