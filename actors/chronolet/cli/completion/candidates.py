"""Completes types, and the names of pods and containers in the node's log, for a shell.

Input: click's context of an unfinished command line. Output: words; none if the log cannot be read within
`Timing.completion_seconds`. Prints nothing, because the shell's prompt is on the terminal. Next: click, which passes
them to the shell.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import click

from chronolet.cli.naming import TYPES
from chronolet.cli.options import DEFAULT_NAMESPACE
from chronolet.common_flags import EVERYWHERE

if TYPE_CHECKING:  # most runs of a command load this module but complete nothing
    from chronolet.cli.services import Services
    from chronolet.node.settings.settings import Settings
    from chronolet.pod.state import State

_TYPES = ("pods", "containers", "devices", "images", "actors", "events", "cgroups", "nodes")


def pods(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of pods, as `web` or `pod/web`, except those already on the command line."""
    kind, slash, _rest = incomplete.partition("/")
    if slash and TYPES.get(kind) != "pods":
        return []
    names = [f"{kind}/{name}" for name in _pods(ctx)] if slash else _pods(ctx)
    return _fitting(names, incomplete, ctx)


def types_then_pods(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the first word to a type (`get` has many, other commands only `pod`), and later words to pods."""
    given = ctx.params.get("words") or ctx.params.get("names") or ()
    if given:
        return pods(ctx, parameter, incomplete) if TYPES.get(given[0].partition("/")[0]) == "pods" else []
    if "/" in incomplete:
        return pods(ctx, parameter, incomplete)
    if ctx.info_name != "get":
        return _fitting(("pod",), incomplete, ctx)
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{one}" for one in _TYPES if one.startswith(last) and one not in taken]


def containers(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the containers of the pod that is on the command line."""
    # click stops parsing at a flag without its value and leaves the arguments before it in `ctx.args`.
    pod = str(ctx.params.get("name") or next(iter(ctx.args), "")).rpartition("/")[2]
    states = _states(ctx)
    names = sorted({one for name, state in states if name == pod for one in _containers(state)})
    return [name for name in names if name.startswith(incomplete)]


def _containers(state: State) -> Iterator[str]:
    spec = state.manifest.spec
    for kind in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        yield from (one.name for one in kind)


def _fitting(words: Iterable[str], incomplete: str, ctx: click.Context) -> list[str]:
    given = ctx.params.get("words") or ctx.params.get("names") or ()
    return [word for word in words if word.startswith(incomplete) and word not in given]


def _pods(ctx: click.Context) -> list[str]:
    return sorted(name for name, _ in _states(ctx))


def _states(ctx: click.Context) -> list[tuple[str, State]]:
    """Return the names and states of the namespace's pods; none if the log cannot be read in time."""
    found: list[tuple[str, State]] = []
    from chronolet.cli.services import Services  # noqa: PLC0415 - see above

    services = ctx.find_object(Services) or Services()
    reader = threading.Thread(target=lambda: found.extend(_read(ctx, services)), name="names", daemon=True)
    reader.start()
    reader.join(services.timing.completion_seconds)
    return found


def _read(ctx: click.Context, services: Services) -> list[tuple[str, State]]:
    from chronolet.history.state import state_at  # noqa: PLC0415 - see above
    from chronolet.kernel.storage.store import HistoryMissing, StoreBroken, StoreUnreachable  # noqa: PLC0415
    from chronolet.node.settings.values import SettingsError  # noqa: PLC0415

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
    """Return the namespace from the flag after the subcommand, or else from the flag before it.

    The option's callback replaces a missing flag with `default`. Therefore `default` after the subcommand counts as
    missing.
    """
    after: str | None = ctx.params.get("namespace")
    before: str | None = ctx.find_root().params.get("namespace")
    return after if after not in (None, DEFAULT_NAMESPACE) else before or DEFAULT_NAMESPACE


def _settings(ctx: click.Context) -> Settings:
    """Return the settings from the flags typed so far, before and after the subcommand."""
    from chronolet.node.settings.common import resolve_common  # noqa: PLC0415 - see above

    before, names = ctx.find_root().params, [one.name for one in EVERYWHERE]
    flags = {name: ctx.params.get(name) or before.get(name) for name in names}
    return resolve_common(flags, os.environ, names)
