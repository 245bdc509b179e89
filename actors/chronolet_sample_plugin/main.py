"""The fake plugin's command line, and what it is told on standard input.

Comes in: options, lines. Goes out: a plugin for each resource. Next: nobody.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click

from chronolet_sample_plugin.behaviour import Behaviour, Gift
from chronolet_sample_plugin.devices import HEALTHY, UNHEALTHY, Devices
from chronolet_sample_plugin.life import Life, Manner
from chronolet_sample_plugin.service import Service, say

FOLDER, WATCHED = "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins_registry"
LONGEST_LINE = 65_536
"""Characters of a command on standard input."""
COMMANDS = """
Commands, a line each on standard input:

\b
  healthy [ID...]            these devices (or all) turn healthy; new ids are added
  unhealthy [ID...]          ... unhealthy
  remove ID...               these devices are gone
  list                       send the same list again
  flood COUNT                send so many lists as fast as they go
  slow METHOD SECONDS        take so long for each call
  fail METHOD [TEXT]         refuse each call
  hang METHOD                never answer
  crash METHOD               end the process at the next call
  crash-late METHOD          ... with the work done, before the answer
  answers COUNT              answer Allocate for so many containers
  usual                      behave well again
  stop                       end

METHOD is options, list, preferred, allocate or prestart. With several resources a command is for all of them.
"""


@click.command(epilog=COMMANDS)
@click.option("--resource", "resources", multiple=True, default=["example.com/thing"], show_default=True)
@click.option("--devices", "count", default=4, show_default=True, help="how many devices each resource has")
@click.option("--prefix", default="", help="what their ids begin with [default: the resource's last part]")
@click.option("--folder", type=click.Path(path_type=Path), help=f"folder of device plugins [default: {FOLDER}]")
@click.option("--watched", is_flag=True, help=f"wait to be found instead of registering [default folder: {WATCHED}]")
@click.option("--socket", default="", help="file name of the socket [default: made of the resource's name]")
@click.option("--device-node", "nodes", multiple=True, metavar="HOST[:CONTAINER[:RWM]]", help="a device file to give")
@click.option("--mount", "mounts", multiple=True, metavar="HOST[:CONTAINER[:ro|rw]]", help="a path to give")
@click.option("--env", "envs", multiple=True, metavar="NAME=VALUE", help="a variable to give")
@click.option("--annotation", "annotations", multiple=True, metavar="NAME=VALUE", help="an annotation to give")
@click.option("--cdi", multiple=True, metavar="VENDOR/CLASS=NAME", help="a CDI device to give")
@click.option("--numa", default=0, help="spread the devices over so many NUMA nodes")
@click.option("--preferred", is_flag=True, help="offer a preference: the highest numbers")
@click.option("--pre-start", is_flag=True, help="ask to be told of each start")
@click.option("--no-options", is_flag=True, help="send no options, and know no GetDevicePluginOptions")
@click.option("--options-when-asked", is_flag=True, help="send no options, and wait for GetDevicePluginOptions")
@click.option("--first-twice", is_flag=True, help="list the first device twice")
@click.option("--api-version", default="v1beta1", show_default=True)
@click.option("--endpoint", default="", help="name another socket than one's own")
@click.option("--do", "commands", multiple=True, metavar="COMMAND", help="a command to begin with, see below")
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
    """A device plugin with fake devices. {id} in --device-node, --mount and --cdi stands for each device's id."""
    gift = Gift(nodes=nodes, mounts=mounts, envs=envs, annotations=annotations, cdi=cdi)
    services = [
        Service(
            resource,
            Devices(prefix or resource.rpartition("/")[2], count, numa_nodes=numa, first_twice=first_twice),
            Behaviour(preferred=preferred, pre_start=pre_start, tells_options=not no_options),
            gift,
            versions=(api_version,),
        )
        for resource in resources
    ]
    lives = [
        Life(
            service,
            Manner(
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
        _obey(command, services, lives)
    threading.Thread(target=_listen, args=(sys.stdin, services, lives), daemon=True).start()
    sys.exit(_live(lives))


def _live(lives: Sequence[Life]) -> int:
    """Until all are over; 1 if one was refused."""
    outcomes: list[str] = []
    threads = [threading.Thread(target=lambda life=life: outcomes.append(life.run())) for life in lives]
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: _end(lives))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(any(outcomes))


def _end(lives: Iterable[Life]) -> None:
    for life in lives:
        life.over.set()


def _listen(lines: TextIO, services: Sequence[Service], lives: Sequence[Life]) -> None:
    for line in _bounded(lines):
        if line.strip():
            _obey(line, services, lives)


def _bounded(lines: TextIO) -> Iterator[str]:
    """The lines of standard input; one that is too long is dropped and reported, whatever its length."""
    dropping = False
    while line := lines.readline(LONGEST_LINE):
        whole = line.endswith("\n") or len(line) < LONGEST_LINE
        if whole and not dropping:
            yield line
        elif not dropping:
            say(f"cannot do a command of more than {LONGEST_LINE} characters: it was dropped")
        dropping = not whole


def _obey(line: str, services: Sequence[Service], lives: Sequence[Life]) -> None:
    """One command; a wrong one is told, and nothing more."""
    word, *rest = line.split()
    try:
        for service in services:
            _do(service, word, rest)
        if word == "stop":
            _end(lives)
    except (LookupError, ValueError) as error:
        say(f"cannot do {line.strip()!r}: {error or 'unknown'}")
    else:
        say("did", line.strip())


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
            service.behaviour.told(word, rest)
