"""Flags that commands share, made from the settings' one table.

Comes in: flags before or behind the subcommand, the environment. Goes out: `Settings` as the command's first argument.
Next: every command module.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from chronolet.node.settings import table as known
from chronolet.node.settings.resolving import resolve

Function = Callable[..., Any]

_TRUTH = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


class Command(click.Command):
    """A subcommand. Takes `--flag=true` and `--flag=false` as kubectl does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(self._plain(args)))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # so that it points to this command's help
            raise

    def _plain(self, words: list[str]) -> Iterator[str]:
        flags = {name: one for one in self.params if isinstance(one, click.Option) and one.is_flag for name in one.opts}
        for index, word in enumerate(words):
            if word == "--":
                yield from words[index:]
                return
            name, _, said = word.partition("=")
            truth = _TRUTH.get(said.lower()) if name in flags else None
            if truth is not False:
                yield word if truth is None else name
            elif flags[name].secondary_opts:
                yield flags[name].secondary_opts[0]
            # Else it is as if the flag had not been given.


_FLAGGED = "chronolet.flagged"
_NAMESPACE = "chronolet.namespace"
DEFAULT_NAMESPACE = "default"


def given_as_flag(name: str) -> bool:
    """Whether the setting of this name was given as a flag of the command at hand, not by the environment."""
    return name in click.get_current_context().meta.get(_FLAGGED, ())


def global_options(function: Function) -> Function:
    """Take the flags that every command knows before the subcommand, too."""

    @functools.wraps(function)
    def run(namespace: str | None = None, **flags: Any) -> Any:
        meta = click.get_current_context().meta
        meta["chronolet.flags"], meta[_NAMESPACE] = flags, namespace
        return function()

    return _add(_namespace(run, "the pods' namespace, for commands that have one"), known.EVERYWHERE)


def with_settings(*names: str) -> Callable[[Function], Function]:
    """Give the command flags for these settings beside the ones that every command has, and resolved `settings`."""
    wanted = known.EVERYWHERE + names

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(config: Path | None = None, **arguments: Any) -> Any:
            before = click.get_current_context().meta.get("chronolet.flags", {})
            behind = {name: arguments.pop(name) for name in wanted}
            flags = {name: behind[name] if behind[name] is not None else before.get(name) for name in wanted}
            click.get_current_context().meta[_FLAGGED] = frozenset(name for name in wanted if flags[name] is not None)
            settings, remarks = resolve(flags, os.environ, config, wanted)
            for remark in remarks:
                click.echo(f"warning: {remark}", err=True)
            return function(settings=settings, **arguments)

        return _add(run, wanted)

    return wrap


def policy_options(*names: str) -> Callable[[Function], Function]:
    """Give the command flags for these settings; `policy` holds the values of those that were given."""

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def run(**arguments: Any) -> Any:
            said = {name: arguments.pop(name) for name in names}
            policy = {
                name: known.setting(name).parse(known.setting(name).flag, value)
                for name, value in said.items()
                if value is not None
            }
            return function(policy=policy, **arguments)

        for name in reversed(names):
            one = known.setting(name)
            run = click.option(one.flag, name, metavar=one.metavar, help=one.help)(run)
        return run

    return wrap


def config_option(function: Function) -> Function:
    """`--config FILE`: a KubeletConfiguration."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option("--config", type=kind, metavar="FILE", help="KubeletConfiguration (YAML)")(function)


def namespace_option(function: Function) -> Function:
    """`-n NAMESPACE`, before the subcommand or behind it; `default` where it is nowhere."""

    def said(context: click.Context, _: click.Parameter, value: str | None) -> str:
        return value or context.meta.get(_NAMESPACE) or DEFAULT_NAMESPACE

    return _namespace(function, "the pods' namespace, where no manifest names it", said)


def _namespace(function: Function, text: str, callback: Any = None) -> Function:
    flag = click.option("-n", "--namespace", callback=callback, show_default=DEFAULT_NAMESPACE, help=text)
    return flag(function)


def _add(function: Function, names: tuple[str, ...]) -> Function:
    for name in reversed(names):
        one = known.setting(name)
        function = click.option(one.flag, name, metavar=one.metavar, help=f"{one.help}  [env: {one.env}]")(function)
    return function
