"""Flags shared by commands, generated from the settings table.

Input: flags before or after the subcommand, the environment. Output: `Settings` as the argument `settings`.
Next: every command module.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from chronolet.node.settings import table as settings_table
from chronolet.node.settings.resolving import resolve

Function = Callable[..., Any]

_TRUTH = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


class Command(click.Command):
    """A subcommand that accepts `--flag=true` and `--flag=false`, as kubectl does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(self._plain(args)))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # makes the error point to this command's help
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
    """Whether the current command got this setting as a flag rather than from the environment."""
    return name in click.get_current_context().meta.get(_FLAGGED, ())


def global_options(function: Function) -> Function:
    """Accept the flags common to all commands before the subcommand as well."""

    @functools.wraps(function)
    def run(namespace: str | None = None, **flags: Any) -> Any:
        meta = click.get_current_context().meta
        meta["chronolet.flags"], meta[_NAMESPACE] = flags, namespace
        return function()

    return _add(_namespace(run, "namespace scope for namespaced commands"), settings_table.EVERYWHERE)


def with_settings(*names: str) -> Callable[[Function], Function]:
    """Add flags for these settings to the common ones, and pass the command the resolved `settings`."""
    wanted = settings_table.EVERYWHERE + names

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(config: Path | None = None, **arguments: Any) -> Any:
            before = click.get_current_context().meta.get("chronolet.flags", {})
            after = {name: arguments.pop(name) for name in wanted}
            flags = {name: after[name] if after[name] is not None else before.get(name) for name in wanted}
            click.get_current_context().meta[_FLAGGED] = frozenset(name for name in wanted if flags[name] is not None)
            settings, warnings = resolve(flags, os.environ, config, wanted)
            for warning in warnings:
                click.echo(f"warning: {warning}", err=True)
            return function(settings=settings, **arguments)

        return _add(run, wanted)

    return wrap


def policy_options(*names: str) -> Callable[[Function], Function]:
    """Add flags for these settings; `policy` holds the parsed values of the flags that were given."""

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(**arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in names}
            policy = {
                name: settings_table.setting(name).parse(settings_table.setting(name).flag, value)
                for name, value in given.items()
                if value is not None
            }
            return function(policy=policy, **arguments)

        for name in reversed(names):
            one = settings_table.setting(name)
            run = click.option(one.flag, name, metavar=one.metavar, help=one.help)(run)
        return run

    return wrap


def config_option(function: Function) -> Function:
    """`--config FILE`: a KubeletConfiguration."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option("--config", type=kind, metavar="FILE", help="KubeletConfiguration (YAML)")(function)


def namespace_option(function: Function) -> Function:
    """`-n NAMESPACE`, before or after the subcommand; `default` if it is not given."""

    def resolved(context: click.Context, _: click.Parameter, value: str | None) -> str:
        return value or context.meta.get(_NAMESPACE) or DEFAULT_NAMESPACE

    return _namespace(function, "namespace scope for this command", resolved)


def _namespace(function: Function, text: str, callback: Any = None) -> Function:
    flag = click.option(
        "-n", "--namespace", metavar="NAMESPACE", callback=callback, show_default=DEFAULT_NAMESPACE, help=text
    )
    return flag(function)


def _add(function: Function, names: tuple[str, ...]) -> Function:
    for name in reversed(names):
        one = settings_table.setting(name)
        function = click.option(one.flag, name, metavar=one.metavar, help=f"{one.help}  [env: {one.env}]")(function)
    return function
