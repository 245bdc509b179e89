"""A scripted agent: owns `manifests` and answers each command with the events that a test specifies.

Input: a node with a hand-written log, a behaviour. Output: the behaviour's events for each command in the mailbox.
"""

import threading
from collections.abc import Callable, Sequence

from chronolet.cli.sending import MANIFESTS
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet_schemas import codec
from chronolet_schemas.envelope import Command, Event, Mail
from tests.cli.support.written_node import WrittenNode

Behaviour = Callable[[Command], Sequence[Event]]
"""Returns the events that answer a command."""


class Agent:
    """A process that owns `manifests` and answers each command."""

    def __init__(self, node: WrittenNode, behaviour: Behaviour) -> None:
        self.node = node
        self.behaviour = behaviour
        self.received: list[Command] = []
        self.store = MemoryStore(node.server)
        self.stopped = False
        self.before_answer: Callable[[], object] = lambda: None
        self.after_answer: Callable[[], None] = lambda: None
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def own(self) -> None:
        self.store.renew("p1", "", 60_000)
        self.store.acquire(MANIFESTS, "", "p1", 1)

    def start(self) -> None:
        self.own()
        self.thread.start()

    def stop(self) -> None:
        self.stopped = True
        self.store.wake()
        self.thread.join()

    def serve(self) -> None:
        done = self.store.heads((MANIFESTS,))[MANIFESTS].mail_cursor
        while not self.stopped:
            inputs = self.store.wait(self.store.last(), {MANIFESTS: done}, 10, 50)
            for mail in inputs.mail.get(MANIFESTS, ()):
                done = mail.id
                self.answer(mail)

    def answer(self, mail: Mail) -> None:
        command = codec.decode(mail.type, mail.data, Command)
        assert mail.request == command.request
        self.received.append(command)
        self.before_answer()
        self.node.write(mail.entity, *self.behaviour(command), cause=command.request)
        self.after_answer()
