"""Command line of the fake plugin, and its commands on standard input.

Input: options, lines. Output: a plugin for each resource.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click

from chronolet_sample_plugin.behaviour import AllocateTemplate, Behaviour
from chronolet_sample_plugin.devices import HEALTHY, UNHEALTHY, Devices
from chronolet_sample_plugin.life import Discovery, Life
from chronolet_sample_plugin.service import Service, print_line

FOLDER, WATCHED = "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins_registry"
LONGEST_LINE = 65_536
"""Maximum length of a command on standard input, in characters."""
STOPS = (signal.SIGTERM, signal.SIGINT)
COMMANDS = """
Commands on standard input, one per line:

\b
  healthy [ID...]            these devices (or all) turn healthy; new ids are added
  unhealthy [ID...]          these devices (or all) turn unhealthy; new ids are added
  remove ID...               remove these devices
  list                       send the same list again
  flood COUNT                send COUNT lists as fast as possible
  slow METHOD SECONDS        delay each call by SECONDS
  fail METHOD [TEXT]         fail each call
  hang METHOD                never answer
  crash METHOD               exit at the next call
  crash-late METHOD          exit after the work, before the answer
  answers COUNT              answer Allocate for COUNT containers
  usual                      behave normally again
  stop                       exit

METHOD is options, list, preferred, allocate or prestart. With several resources a command applies to all of them.
"""


@click.command(epilog=COMMANDS)
@click.option("--resource", "resources", multiple=True, default=["example.com/thing"], show_default=True)
@click.option("--devices", "count", default=4, show_default=True, help="number of devices per resource")
@click.option("--prefix", default="", help="prefix of device ids [default: last part of the resource name]")
@click.option("--folder", type=click.Path(path_type=Path), help=f"device plugin folder [default: {FOLDER}]")
@click.option("--watched", is_flag=True, help=f"wait for discovery instead of registering [default folder: {WATCHED}]")
@click.option("--socket", default="", help="file name of the socket [default: from the resource name]")
@click.option(
    "--device-node", "nodes", multiple=True, metavar="HOST[:CONTAINER[:RWM]]", help="device file for the container"
)
@click.option("--mount", "mounts", multiple=True, metavar="HOST[:CONTAINER[:ro|rw]]", help="mount for the container")
@click.option("--env", "envs", multiple=True, metavar="NAME=VALUE", help="environment variable for the container")
@click.option("--annotation", "annotations", multiple=True, metavar="NAME=VALUE", help="annotation for the container")
@click.option("--cdi", multiple=True, metavar="VENDOR/CLASS=NAME", help="CDI device for the container")
@click.option("--numa", default=0, help="number of NUMA nodes to spread the devices over")
@click.option("--preferred", is_flag=True, help="offer GetPreferredAllocation: the highest numbers")
@click.option("--pre-start", is_flag=True, help="require PreStartContainer")
@click.option(
    "--no-options", is_flag=True, help="register without options, and do not implement GetDevicePluginOptions"
)
@click.option(
    "--options-when-asked", is_flag=True, help="register without options, and wait for GetDevicePluginOptions"
)
@click.option("--first-twice", is_flag=True, help="list the first device twice")
@click.option("--api-version", default="v1beta1", show_default=True)
@click.option("--endpoint", default="", help="socket name to register instead of the real one")
@click.option("--do", "commands", multiple=True, metavar="COMMAND", help="command to run at startup; see below")
def main(  # noqa: PLR0917 - one for each option
    resources: Sequence[str],
    count: int,
    prefix: str,
    folder: Path | None,
    watched: bool,
    socket: str,
    nodes: tuple[str, ...],
    mounts: tuple[str, ...],
    envs: tuple[str, ...],
    annotations: tuple[str, ...],
    cdi: tuple[str, ...],
    numa: int,
    preferred: bool,
    pre_start: bool,
    no_options: bool,
    options_when_asked: bool,
    first_twice: bool,
    api_version: str,
    endpoint: str,
    commands: Sequence[str],
) -> None:
    """A device plugin with fake devices. {id} in --device-node, --mount and --cdi is replaced by each device's id."""
    # Blocked in all threads, for `_end_on_signal`: a handler would have to wait until this thread runs again.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    template = AllocateTemplate(nodes=nodes, mounts=mounts, envs=envs, annotations=annotations, cdi=cdi)
    services = [
        Service(
            resource,
            Devices(prefix or resource.rpartition("/")[2], count, numa_nodes=numa, first_twice=first_twice),
            Behaviour(preferred=preferred, pre_start=pre_start, sends_options_on_request=not no_options),
            template,
            versions=(api_version,),
        )
        for resource in resources
    ]
    lives = [
        Life(
            service,
            Discovery(
                folder=folder or Path(WATCHED if watched else FOLDER),
                socket=socket or service.variable.lower() + ".sock",
                watched=watched,
                version=api_version,
                endpoint=endpoint,
                sends_options=not (no_options or options_when_asked),
            ),
        )
        for service in services
    ]
    for command in commands:
        _execute(command, services, lives)
    threading.Thread(target=_listen, args=(sys.stdin, services, lives), daemon=True).start()
    sys.exit(_run_all(lives))


def _run_all(lives: Sequence[Life]) -> int:
    """Run until all plugins have ended; return 1 if one was refused, else 0."""
    outcomes: list[str] = []
    threads = [threading.Thread(target=lambda life=life: outcomes.append(life.run())) for life in lives]
    threading.Thread(target=_end_on_signal, args=(lives,), daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(any(outcomes))


def _end_on_signal(lives: Iterable[Life]) -> None:
    signal.sigwait(STOPS)
    _end(lives)


def _end(lives: Iterable[Life]) -> None:
    for life in lives:
        life.over.set()


def _listen(lines: TextIO, services: Sequence[Service], lives: Sequence[Life]) -> None:
    for line in _bounded(lines):
        if line.strip():
            _execute(line, services, lives)


def _bounded(lines: TextIO) -> Iterator[str]:
    """Yield the lines of standard input. A line that is too long is dropped and reported once, whatever its length."""
    dropping = False
    while line := lines.readline(LONGEST_LINE):
        whole = line.endswith("\n") or len(line) < LONGEST_LINE
        if whole and not dropping:
            yield line
        elif not dropping:
            print_line(f"command dropped: longer than {LONGEST_LINE} characters")
        dropping = not whole


def _execute(line: str, services: Sequence[Service], lives: Sequence[Life]) -> None:
    """Execute one command. An invalid command is only reported."""
    word, *rest = line.split()
    try:
        for service in services:
            _do(service, word, rest)
        if word == "stop":
            _end(lives)
    except (LookupError, ValueError) as error:
        print_line(f"command {line.strip()!r} failed: {error or 'unknown command'}")
    else:
        print_line("did", line.strip())


def _do(service: Service, word: str, rest: list[str]) -> None:
    match word, rest:
        case "healthy", ids:
            service.devices.set(HEALTHY, ids)
        case "unhealthy", ids:
            service.devices.set(UNHEALTHY, ids)
        case "remove", [_, *_]:
            service.devices.remove(rest)
        case "list", []:
            service.devices.again()
        case "flood", [number]:
            service.flood(int(number))
        case "stop", []:
            pass
        case _:
            service.behaviour.apply(word, rest)
