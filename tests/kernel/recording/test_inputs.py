"""What is recorded of each kind of input, how much of it, and that it can be read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from chronolet.kernel.decider import Due, EffectFailed
from chronolet.kernel.folding import folded
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.payloads import MOST_LINKS
from chronolet.kernel.recording.reading import Decision, Grouping, InputReader, NotRead, RecordedEvents, Unreadable
from chronolet.kernel.step.batching import batched
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.storage.redis.replies import NEVER_OWNED
from chronolet.kernel.storage.store import Committed
from chronolet.kube_events import actor as kube_events
from chronolet_schemas import codec, data_fields, kernel, registry
from chronolet_schemas.envelope import START, Entry, Event, Message, Position
from chronolet_schemas.keys import Shard
from chronolet_schemas.kube_events import Recorded
from tests.kernel import chore, mirror, tally

T = 1_700_000_000_000
LARGE = "a text that appears nowhere else, with the numbers " + " ".join(str(n * n) for n in range(400))


class Node:
    """A shard whose turns go into a log, and the log's reader."""

    def __init__(self, kind: Kind[Any], shard: str = "") -> None:
        self.kind = kind
        self.log: list[Entry] = []
        self.others: dict[str, Entry] = {}
        self.ledger: Ledger[Any] = Ledger(kind, Shard(shard or kind.name), "7:p", NEVER_OWNED, 1)

    def restart(self) -> None:
        """Give the shard another owner, which has the same states."""
        states, self.ledger = self.ledger.states, Ledger(self.kind, self.ledger.shard, "8:q", NEVER_OWNED, 1)
        self.ledger.states = states

    def turn(self, *items: Input, now: int = T) -> Sequence[Entry]:
        turn = self.ledger.begin()
        for item in batched(self.kind.batches, items, START):
            self.ledger.decide(turn, item, now)
        n = len(self.log)
        added = [Entry(Position(T, n + 1 + i), *record) for i, record in enumerate(turn.records)]
        self.log += added
        self.ledger.committed(turn, Committed(n, Position(T, len(self.log))))
        return added

    def other(self, event: Event, milliseconds: int, n: int) -> Input:
        """Return an event of another kind as an input."""
        at, data, name = Position(milliseconds, n), codec.encode(event), registry.type_of(type(event))
        self.others[str(at)] = Entry(at, name, "", "", "x#1", "", data)
        return Input("log", at, tuple(self.kind.subscribes[type(event)](event)), event, str(at), name, time=at[0])

    def _up_to(self, position: str, count: int) -> Sequence[Entry]:
        found = [entry for at, entry in self.others.items() if at <= position][-count:]
        if len(found) < count:
            raise NotRead(f"{position} is missing")
        return found

    def decisions(self) -> Iterator[tuple[Decision, list[Event]]]:
        """Yield what the log says about each decision, and the decision's events."""
        grouping, reader = Grouping(), InputReader(self.kind, self._up_to)
        decider, states = self.kind.decider, dict[str, Any]()
        for group in [*(grouping.add(entry) for entry in self.log), grouping.end()]:
            if group is None:
                continue
            key = group.entries[0].entity.partition("/")[2]
            events = events_of(group)
            yield reader.decision(group, states.get(key) or decider.initial), events
            for event in events:
                states[key] = folded(decider, states.get(key), event)


def events_of(group: RecordedEvents) -> list[Event]:
    return [codec.decode(entry.type, entry.data, Event) for entry in group.entries]


def signal(key: str, message: Message, cause: str = f"{T - 20}-3") -> Input:
    return Input("signal", START, (key,), message, cause, type(message).__name__)


def command(**fields: Any) -> Input:
    message = chore.Assign(request="r1", key="a", **fields)
    return Input("mailbox", Position(5, 0), ("a",), message, "r1", "chore.Assign@1")


def value(entry: Entry) -> Any:
    """Return the value of `_in`, without the process that an owner's first decision names."""
    found = data_fields.parts(entry.data)
    if not found.recorded:
        return "nothing"
    return found.value["in"] if isinstance(found.value, dict) else found.value


def test_of_a_log_entry_only_the_time_is_recorded() -> None:
    node = Node(mirror.kind(1))
    (seen,) = node.turn(node.other(tally.Added(key="a", number=1, count=1, checksum=5), T - 30, 4), now=T - 2)
    assert value(seen) == 28
    ((decision, _),) = node.decisions()
    assert decision == (tally.Added(key="a", number=1, count=1, checksum=5), T - 2)


def test_of_a_log_entry_without_influence_of_the_time_nothing_is_recorded_but_by_a_new_owner() -> None:
    node = Node(kube_events.kind())
    posted = [Recorded(name="a", reason=f"r{n}", message="m", severity="Normal", object_kind="Pod") for n in range(3)]
    first = node.turn(node.other(posted[0], T, 1))
    second = node.turn(node.other(posted[1], T, 2))
    node.restart()
    third = node.turn(node.other(posted[2], T, 3))
    assert [value(entry) for entry in (first[0], second[0], third[0])] == [None, "nothing", None]
    assert [[one for _, one in decision.message.events] for decision, _ in node.decisions()] == [  # type: ignore[attr-defined]
        [one] for one in posted
    ]


def test_an_owners_first_decision_names_its_process_even_behind_events_of_the_kernel() -> None:
    node = Node(kube_events.kind())
    for process in ("p", "q"):
        turn = node.ledger.begin()
        node.ledger.note(turn, kernel.ShardTakenOver(former_owner="", owner=process, proof="lock"))
        posted = Recorded(name="a", reason="r", message="m", severity="Normal", object_kind="Pod")
        (item,) = batched(node.kind.batches, [node.other(posted, T, 1)], START)
        node.ledger.decide(turn, item, T)
        assert data_fields.parts(turn.records[1].data).value == {"by": process, "in": None}
        node.restart()


def test_of_combined_log_entries_the_number_is_recorded() -> None:
    node = Node(kube_events.kind())
    posted = [Recorded(name="a", reason=f"r{n}", message="m", severity="Normal", object_kind="Pod") for n in range(3)]
    events = node.turn(*(node.other(one, T, n) for n, one in enumerate(posted)))
    assert value(events[0]) == [None, 3]
    ((decision, found),) = node.decisions()
    assert [one for _, one in decision.message.events] == posted  # type: ignore[attr-defined]
    assert len(found) == len(events)


@pytest.mark.parametrize("text", ["", "short", LARGE])
def test_a_command_is_recorded_with_its_content(text: str) -> None:
    node = Node(chore.kind())
    (assigned,) = node.turn(command(one_shot=text, due=9), now=T)
    ((decision, _),) = node.decisions()
    assert decision == (chore.Assign(request="r1", key="a", one_shot=text, due=9), T)
    assert len(assigned.data) < len(codec.encode(chore.Assigned(one_shot=text, due=9))) + 100


def test_of_a_timer_nothing_but_the_time_is_recorded_if_the_state_shows_it() -> None:
    node = Node(chore.kind())
    node.turn(command(due=T + 50))
    (fired,) = node.turn(Input("due", START, ("a",), Due(at=T + 50), f"{T}-1", "Due"), now=T + 60)
    assert value(fired) == [60, "Due"]
    assert [decision for decision, _ in node.decisions()][1] == (Due(at=T + 50), T + 60)


def test_a_timer_that_fires_for_a_later_time_is_recorded_with_it() -> None:
    node = Node(chore.kind())
    node.turn(command(due=T + 50))
    (fired,) = node.turn(Input("due", START, ("a",), Due(at=T + 70), f"{T}-1", "Due"), now=T + 71)
    assert value(fired) == [71, "Due", T + 70]
    assert [decision for decision, _ in node.decisions()][1] == (Due(at=T + 70), T + 71)


def test_of_a_signal_only_what_neither_state_nor_events_show_is_recorded() -> None:
    node = Node(chore.kind())
    node.turn(command(one_shot="w"))
    (done,) = node.turn(signal("a", chore.Result(intent="w", text="result")))
    assert value(done) == [20, "Result"]
    node.turn(command(one_shot="v"))
    (failed,) = node.turn(signal("a", EffectFailed(effect="OneShot", subject="one-shot", intent="v", error="e")))
    assert value(failed) == [20, "EffectFailed", {"effect": "OneShot"}]
    found = [decision.message for decision, _ in node.decisions()]
    assert found[1] == chore.Result(intent="w", text="result")
    assert found[3] == EffectFailed(effect="OneShot", subject="one-shot", intent="v", error="e")


def test_a_default_that_differs_from_the_event_is_recorded() -> None:
    """A field that the record lacks has the event's value, even if the signal's own value is the default."""
    node = Node(tally.kind(1))
    add = tally.Add(request="r", key="a", number=1)
    for _ in range(10):
        node.turn(Input("mailbox", Position(1, 0), ("a",), add, "r", "tally.Add@1"))
    took = tally.TookNote(subject="other", intent="other", count=10)
    (taken,) = node.turn(signal("a", took))
    assert value(taken)[2] == {"subject": "other", "intent": "other"}
    assert [decision.message for decision, _ in node.decisions()][-1] == took


def test_a_large_signal_is_compressed_with_its_events() -> None:
    node = Node(chore.kind())
    node.turn(command(one_shot="w"))
    message = EffectFailed(effect=LARGE[:900], subject="one-shot", intent="w", error=LARGE)
    (failed,) = node.turn(signal("a", message))
    assert len(failed.data) < 1.2 * len(codec.encode(chore.Failed(intent="w", error=LARGE)))
    assert [decision.message for decision, _ in node.decisions()][1] == message


def large_signals(node: Node, texts: Sequence[str]) -> tuple[list[Message], list[int]]:
    """Decide large signals, and return them with the sizes of their events."""
    sent: list[Message] = []
    sizes = []
    for n, text in enumerate(texts):
        node.turn(command(one_shot=f"w{n}"))
        sent.append(EffectFailed(effect=text, subject="one-shot", intent=f"w{n}", error="e"))
        sizes.append(len(node.turn(signal("a", sent[-1]))[0].data))
    return sent, sizes


def test_a_large_signal_that_resembles_the_one_before_takes_little_space() -> None:
    node = Node(chore.kind())
    sent, sizes = large_signals(node, [f"{LARGE}{n}" for n in range(2)])
    assert sizes[1] < sizes[0] / 10, "the one before is the dictionary"
    node.restart()
    again, others = large_signals(node, [LARGE])
    assert others[0] > sizes[0] / 2, "a new owner does not know the one before"
    assert [decision.message for decision, _ in node.decisions()][1::2] == sent + again


def test_now_and_then_a_large_signal_does_without_the_one_before() -> None:
    node = Node(chore.kind())
    sent, sizes = large_signals(node, [f"{LARGE}{n}" for n in range(MOST_LINKS + 3)])
    full = [n for n, size in enumerate(sizes) if size > sizes[0] / 2]
    assert full == [0, MOST_LINKS + 1]
    assert [decision.message for decision, _ in node.decisions()][1::2] == sent


def test_a_command_that_is_repeated_takes_little_space() -> None:
    node = Node(chore.kind())
    sizes = []
    for _ in range(3):
        message = chore.Assign(request="r1", key="a", refuse=True, one_shot=LARGE * 40)
        item = Input("mailbox", Position(5, 0), ("a",), message, "r1", "chore.Assign@1")
        sizes.append(len(node.turn(item)[0].data))
    assert sizes[0] > 1_000
    assert max(sizes[1:]) < 50
    assert [decision.message for decision, _ in node.decisions()] == [message] * 3


@pytest.mark.parametrize("missing", [1, 3])
def test_a_content_whose_predecessor_was_not_read_is_not_guessed(missing: int) -> None:
    node = Node(chore.kind())
    large_signals(node, [f"{LARGE}{n}" for n in range(3)])
    reader, state = InputReader(node.kind, node._up_to), chore.Chore(one_shot="w0")
    groups = [group(entry) for n, entry in enumerate(node.log) if n % 2 and n != missing]
    reads = [_reads(reader, one, state) for one in groups]
    assert reads == ([False, False] if missing == 1 else [True, False])


def group(entry: Entry) -> RecordedEvents:
    return RecordedEvents((entry,), (data_fields.parts(entry.data),))


def _reads(reader: InputReader, events: RecordedEvents, state: Any) -> bool:
    try:
        reader.decision(events, state)
    except NotRead:
        return False
    return True


def test_a_message_for_two_entities_is_recorded_for_each() -> None:
    node = Node(chore.kind(commands={chore.Assign: lambda _: ("a", "b")}))
    message = chore.Assign(request="r1", key="a", one_shot="w")
    entries = node.turn(Input("mailbox", Position(5, 0), ("a", "b"), message, "r1", "chore.Assign@1"))
    assert [entry.entity for entry in entries] == ["chore/a", "chore/b"]
    assert [decision.message for decision, _ in node.decisions()] == [message, message]


def test_events_of_one_decision_belong_together() -> None:
    node = Node(chore.kind())
    node.turn(command(ends=True), command(ends=True))
    assert [len(events) for _, events in node.decisions()] == [2, 2]


# -- records that cannot be read -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        "text",
        [],
        [1],
        [1, "Unknown"],
        [1, "Result", 5],
        [1, "Result", {"text": 5}],
        [1, "Result", b"\xff\xff"],
        [1, "Result", None],
        {"by": "p"},
        [1, "chore.Unknown@1", b"\x03\x00"],
        [1, "chore.Assign@9", b"\x03\x00"],
        [1, "Due"],
        ["now", "Result"],
        {},
    ],
)
def test_a_broken_record_is_named_with_its_position(broken: Any) -> None:
    node = Node(chore.kind())
    (entry,) = node.turn(command())
    plain = data_fields.parts(entry.data).plain
    node.log = [entry._replace(data=data_fields.with_input(plain, broken))]
    with pytest.raises(Unreadable, match=rf"^{entry.position}: "):
        list(node.decisions())
