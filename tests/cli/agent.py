"""A process that answers commands as a test tells it.

Input: a node written by hand, a behaviour. Output: the events of that behaviour for each command in the mailbox.
"""

import threading
from collections.abc import Callable, Sequence

from chronolet.cli.asking import MANIFESTS
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet_schemas import codec
from chronolet_schemas.envelope import Command, Event, Mail
from tests.cli.written import WrittenNode

Behaviour = Callable[[Command], Sequence[Event]]


class Agent:
    """A process that owns `manifests` and answers as it is told."""

    def __init__(self, node: WrittenNode, behaviour: Behaviour) -> None:
        self.node = node
        self.behaviour = behaviour
        self.seen: list[Command] = []
        self.store = MemoryStore(node.server)
        self.ended = False
        self.beforehand: Callable[[], object] = lambda: None
        self.afterwards: Callable[[], None] = lambda: None
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def own(self) -> None:
        self.store.renew("p1", "", 60_000)
        self.store.acquire(MANIFESTS, "", "p1", 1, proven_dead=False)

    def start(self) -> None:
        self.own()
        self.thread.start()

    def stop(self) -> None:
        self.ended = True
        self.store.wake()
        self.thread.join()

    def serve(self) -> None:
        done = self.store.heads((MANIFESTS,))[MANIFESTS].mail_cursor
        while not self.ended:
            inputs = self.store.wait(self.store.last(), {MANIFESTS: done}, 10, 50)
            for mail in inputs.mail.get(MANIFESTS, ()):
                done = mail.id
                self.answer(mail)

    def answer(self, mail: Mail) -> None:
        command = codec.decode(mail.type, mail.data, Command)
        assert mail.request == command.request
        self.seen.append(command)
        self.beforehand()
        self.node.write(mail.entity, *self.behaviour(command), cause=command.request)
        self.afterwards()
