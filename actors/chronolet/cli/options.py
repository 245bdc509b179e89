"""Adds flags to commands: those that all commands share, and others from the settings table.

Input: flags before or after the subcommand, the environment. Output: `Settings` as the argument `settings`.
Next: every command module. The settings are loaded only when a command needs them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chronolet.cli.loading import loaded
from chronolet.common_flags import EVERYWHERE, Flag

if TYPE_CHECKING:  # slow to load
    from chronolet.node.settings.setting import Setting
    from chronolet.node.settings.settings import Settings

Function = Callable[..., Any]

_TRUTH = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


class Command(click.Command):
    """A subcommand that accepts `--flag=true` and `--flag=false`, as kubectl does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(self._plain(args)))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # makes the error message refer to this command's help
            raise

    def _plain(self, words: list[str]) -> Iterator[str]:
        flags = {name: one for one in self.params if isinstance(one, click.Option) and one.is_flag for name in one.opts}
        for index, word in enumerate(words):
            if word == "--":
                yield from words[index:]
                return
            name, _, value = word.partition("=")
            truth = _TRUTH.get(value.lower()) if name in flags else None
            if truth is not False:
                yield word if truth is None else name
            elif flags[name].secondary_opts:
                yield flags[name].secondary_opts[0]
            # `--flag=false` without a `--no-flag` form: drop the flag.


_FLAGGED = "chronolet.flagged"
_NAMESPACE = "chronolet.namespace"
DEFAULT_NAMESPACE = "default"


def given_as_flag(name: str) -> bool:
    """Return whether the current command got this setting from a flag rather than from the environment."""
    return name in click.get_current_context().meta.get(_FLAGGED, ())


def global_options(function: Function) -> Function:
    """Let the flags that all commands share, and `-n`, precede the subcommand."""

    @functools.wraps(function)
    def run(namespace: str | None = None, **flags: Any) -> Any:
        meta = click.get_current_context().meta
        meta["chronolet.flags"], meta[_NAMESPACE] = flags, namespace
        return function()

    return _add_common(_namespace(run, "namespace scope for namespaced commands"))


def with_settings(*names: str) -> Callable[[Function], Function]:
    """Add the flags that all commands share and the flags for `names`. The command receives the resolved `settings`."""
    wanted = (*(one.name for one in EVERYWHERE), *names)

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(config: Path | None = None, **arguments: Any) -> Any:
            before = click.get_current_context().meta.get("chronolet.flags", {})
            after = {name: arguments.pop(name) for name in wanted}
            flags = {name: after[name] if after[name] is not None else before.get(name) for name in wanted}
            click.get_current_context().meta[_FLAGGED] = frozenset(name for name in wanted if flags[name] is not None)
            return function(settings=_resolved(flags, config, wanted), **arguments)

        return _add_common(_add(run, names))

    return wrap


def _resolved(flags: Mapping[str, Any], config: Path | None, names: Collection[str]) -> Settings:
    """Resolve the settings. Print warnings about the configuration file."""
    common = loaded("chronolet.node.settings.common", hidden=("typing_extensions",))  # `--help` needs no settings
    if config is None and all(map(common.is_common, names)):
        settings: Settings = common.resolve_common(flags, os.environ, names)
        return settings
    from chronolet.node.settings.resolving import resolve  # noqa: PLC0415 - only `run` and `check` need all settings

    settings, warnings = resolve(flags, os.environ, config, names)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    return settings


def at_option(function: Function) -> Function:
    """Add the option `--at`. The command receives its text, or None, as `at`, for `session`."""
    option = click.option(
        "--at",
        metavar="MOMENT",
        help="a moment of the past: -15m, 03:00, 2026-11-21T03:00:00Z, or #1234, an entry of the log",
    )
    return option(function)


def policy_options(*names: str) -> Callable[[Function], Function]:
    """Add flags for these settings. The command receives the parsed values of the given flags as `policy`, a map from
    the settings' names.
    """
    from chronolet.node.settings.table import setting  # noqa: PLC0415 - few commands have such flags

    settings = [setting(name) for name in names]

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(**arguments: Any) -> Any:
            given = [(one, arguments.pop(one.name)) for one in settings]
            policy = {one.name: one.parse(one.flag, value) for one, value in given if value is not None}
            return function(policy=policy, **arguments)

        for one in reversed(settings):
            run = click.option(one.flag, one.name, metavar=one.metavar, help=one.help)(run)
        return run

    return wrap


def config_option(function: Function) -> Function:
    """Add `--config FILE` to a command, for a KubeletConfiguration."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option("--config", type=kind, metavar="FILE", help="KubeletConfiguration (YAML)")(function)


def namespace_option(function: Function) -> Function:
    """Add `-n NAMESPACE`, which may precede or follow the subcommand. Without it, the namespace is `default`."""

    def resolved(context: click.Context, _: click.Parameter, value: str | None) -> str:
        return value or context.meta.get(_NAMESPACE) or DEFAULT_NAMESPACE

    return _namespace(function, "namespace scope for this command", resolved)


def _namespace(function: Function, text: str, callback: Any = None) -> Function:
    flag = click.option(
        "-n", "--namespace", metavar="NAMESPACE", callback=callback, show_default=DEFAULT_NAMESPACE, help=text
    )
    return flag(function)


def _add_common(function: Function) -> Function:
    for one in reversed(EVERYWHERE):
        function = _option(one)(function)
    return function


def _add(function: Function, names: Sequence[str]) -> Function:
    """Add flags for these settings."""
    if not names:
        return function
    from chronolet.node.settings.common import COMMON, is_common  # noqa: PLC0415 - most commands have no such flags

    if all(map(is_common, names)):
        known = {one.name: one for one in COMMON}
    else:
        from chronolet.node.settings.table import SETTINGS  # noqa: PLC0415 - few commands need all settings

        known = {one.name: one for one in SETTINGS}
    for name in reversed(names):
        function = _option(known[name])(function)
    return function


def _option(one: Flag | Setting) -> Callable[[Function], Function]:
    return click.option(one.flag, one.name, metavar=one.metavar, help=f"{one.help}  [env: {one.env}]")
