"""Programs, shorthand methods and a notice follower for the contract tests of the runtime."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from chronolet.adapters.fakes.runtime import Program
from chronolet.ports.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    Notice,
    PortMapping,
    Refusal,
    Runtime,
    SandboxSpec,
    Stream,
)
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until

SHELL = "/bin/sh"
STOPS_ON_TERM = (SHELL, "-c", 'trap "exit 4" TERM; echo ready; while :; do sleep 1 & wait $!; done')
IGNORES_TERM = (SHELL, "-c", 'trap "" TERM; echo ready; while :; do sleep 1 & wait $!; done')
EXIT_3 = (SHELL, "-c", "echo out; echo err >&2; exit 3")
MISSING = ("/no/such/file",)
EXIT_5 = (SHELL, "-c", "echo out; echo err >&2; exit 5")
LASTS = (SHELL, "-c", "sleep 3600 & wait")
COMPUTES = (SHELL, "-c", "while :; do :; done")
ABSENT = ("/no/such/command",)
CAT = ("cat",)
WIDE = (SHELL, "-c", "until stty size 2>/dev/null | grep 31; do :; done")

PROGRAMS = {
    EXIT_5: Program(exits=5, stdout=b"out\n", stderr=b"err\n"),
    ABSENT: Program(missing='exec: "/no/such/command": stat /no/such/command: no such file or directory'),
    COMPUTES: Program(computes=True),
    STOPS_ON_TERM: Program(on_term=4, stdout=b"ready\n"),
    IGNORES_TERM: Program(on_term=None, stdout=b"ready\n"),
    EXIT_3: Program(exits=3, stdout=b"out\n", stderr=b"err\n"),
    WIDE: Program(exits=0, stdout=b"31 97\r\n"),
    MISSING: Program(missing='exec: "/no/such/file": no such file or directory'),
}
NODE = {"chronolet/node": "contract"}
_names = itertools.count(1)


@dataclass
class Harness:
    """One implementation of the runtime, with shorthand methods."""

    runtime: Runtime
    go_down: Callable[[], None]
    come_up: Callable[[], None]
    freeze: Callable[[str], None]

    def sandbox(self, *ports: PortMapping, start: bool = True) -> str:
        spec = SandboxSpec(name=new_name(), labels=NODE, image=PAUSE.reference, hostname="web", ports=ports)
        created = self.runtime.create_sandbox(spec)
        if start:
            self.runtime.start(created)
        return created

    def container(self, sandbox: str, command: Sequence[str], name: str = "") -> str:
        spec = ContainerSpec(
            name=name or new_name(),
            labels={**NODE, "role": "app"},
            sandbox_id=sandbox,
            image=BUSYBOX.reference,
            command=command[:1],
            args=command[1:],
            env={"COLOUR": "red"},
        )
        return self.runtime.create_container(spec)

    def run(self, sandbox: str, command: Sequence[str]) -> str:
        created = self.container(sandbox, command)
        self.runtime.start(created)
        return created

    def ready(self, container: str) -> None:
        """Wait for the program's output, which it prints after setting its traps."""
        wait_until(lambda: self.output(container)["stdout"] == b"ready\n", "the output of the program")

    def output(self, container: str) -> dict[str, bytes]:
        pieces = self.runtime.logs(container, follow=False, tail=None, since=None, timestamps=False)
        output = {"stdout": b"", "stderr": b""}
        for stream, piece in pieces:
            output[stream] += piece
        return output

    def detail(self, container: str) -> ContainerState:
        found = self.runtime.inspect(container)
        assert found is not None
        return found

    def dead(self, container: str) -> ContainerState:
        wait_until(lambda: self.detail(container).state == "exited", "the container's end")
        return self.detail(container)


@dataclass
class Follower:
    """Reads notices on a separate thread."""

    notices: list[Notice] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    ends: list[Refusal | None] = field(default_factory=list)

    def actions(self, container: str) -> list[str]:
        return [notice.action for notice in self.notices if notice.id == container]

    def read(self, runtime: Runtime, labels: dict[str, str], since: int | None) -> None:
        try:
            for notice in runtime.follow(labels, since, self.streams.append):
                self.notices.append(notice)
        except Refusal as refusal:
            self.ends.append(refusal)
        else:
            self.ends.append(None)


@contextmanager
def following(harness: Harness, labels: dict[str, str], since: int | None = None) -> Iterator[Follower]:
    follower = Follower()
    thread = threading.Thread(target=follower.read, args=(harness.runtime, labels, since))
    thread.start()
    wait_until(lambda: bool(follower.streams), "the open stream")
    yield follower
    follower.streams[0].close()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive(), "a closed stream continues"


def new_name() -> str:
    return f"contract-{next(_names)}"
