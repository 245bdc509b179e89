"""What a shell may offer behind a half-typed word: types, and the names of pods that the node's log knows.

Comes in: click's context of an unfinished command line. Goes out: words; none where the log cannot be read at once.
Nothing is printed: the shell's own line stands on the terminal. Next: click, which hands them to the shell.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing

import click

from chronolet.cli.naming import TYPES
from chronolet.cli.options import DEFAULT_NAMESPACE
from chronolet.cli.services import Services
from chronolet.history.state import state_at
from chronolet.kernel.storage.store import HistoryMissing, StoreBroken, StoreUnreachable
from chronolet.node.settings import table as settings_table
from chronolet.node.settings.resolving import resolve
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.pod.state import State

_TYPES = ("pods", "containers", "devices", "images", "actors", "events", "cgroups", "nodes")
LIMIT_SECONDS = 1.0
"""A person who pressed the tabulator key waits no longer."""


def pods(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of pods, as `web` or `pod/web`; not those that stand there already."""
    kind, slash, _rest = incomplete.partition("/")
    if slash and TYPES.get(kind) != "pods":
        return []
    names = [f"{kind}/{name}" for name in _pods(ctx)] if slash else _pods(ctx)
    return _fitting(names, incomplete, ctx)


def types_then_pods(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """A type first (`get` knows them all, other commands pods alone), then names."""
    said = ctx.params.get("words") or ctx.params.get("names") or ()
    if said:
        return pods(ctx, parameter, incomplete) if TYPES.get(said[0].partition("/")[0]) == "pods" else []
    if "/" in incomplete:
        return pods(ctx, parameter, incomplete)
    if ctx.info_name != "get":
        return _fitting(("pod",), incomplete, ctx)
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{one}" for one in _TYPES if one.startswith(last) and one not in taken]


def containers(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of the containers of the pod that was typed already."""
    # click stops reading at a flag that still lacks its value, and leaves the arguments before it where they are.
    pod = str(ctx.params.get("name") or next(iter(ctx.args), "")).rpartition("/")[2]
    states = _states(ctx)
    names = sorted({one for name, state in states if name == pod for one in _containers(state)})
    return [name for name in names if name.startswith(incomplete)]


def _containers(state: State) -> Iterator[str]:
    spec = state.manifest.spec
    for kind in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        yield from (one.name for one in kind)


def _fitting(words: Iterable[str], incomplete: str, ctx: click.Context) -> list[str]:
    said = ctx.params.get("words") or ctx.params.get("names") or ()
    return [word for word in words if word.startswith(incomplete) and word not in said]


def _pods(ctx: click.Context) -> list[str]:
    """In order."""
    return sorted(name for name, _ in _states(ctx))


def _states(ctx: click.Context) -> list[tuple[str, State]]:
    """The pods of the namespace, with their names; none if the log does not answer in time."""
    found: list[tuple[str, State]] = []
    services = ctx.find_object(Services) or Services()
    reader = threading.Thread(target=lambda: found.extend(_read(ctx, services)), name="names", daemon=True)
    reader.start()
    reader.join(LIMIT_SECONDS)
    return found


def _read(ctx: click.Context, services: Services) -> list[tuple[str, State]]:
    try:
        settings = _settings(ctx)
        if not settings.redis and not settings.redis_socket.exists():
            return []
        with closing(services.store(settings)) as store:
            moment = state_at(store, services.archive(settings, store), services.kinds(("pod",)))
    except (SettingsError, StoreUnreachable, StoreBroken, HistoryMissing):
        return []
    known = ((*key.partition("/"), state) for key, state in moment.states["pod"].items() if state.uid)
    everywhere, wanted = ctx.params.get("all_namespaces"), _namespace(ctx)
    return [(name, state) for namespace, _, name, state in known if everywhere or namespace == wanted]


def _namespace(ctx: click.Context) -> str:
    """Behind the subcommand, or before it; a callback has put the default where the first is missing."""
    behind: str | None = ctx.params.get("namespace")
    before: str | None = ctx.find_root().params.get("namespace")
    return behind if behind not in (None, DEFAULT_NAMESPACE) else before or DEFAULT_NAMESPACE


def _settings(ctx: click.Context) -> Settings:
    """By the flags typed so far, before and behind the subcommand."""
    before = ctx.find_root().params
    flags = {name: ctx.params.get(name) or before.get(name) for name in settings_table.EVERYWHERE}
    return resolve(flags, os.environ, None, settings_table.EVERYWHERE)[0]
