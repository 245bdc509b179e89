"""Reading the history: archive and stream as one sequence, states with and without snapshots, the last entries."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.history.derived.checkpoint import Checkpoint, Version
from chronolet.history.derived.wanted import EVERYTHING, Wanted, concerns_pod
from chronolet.history.entries import Late, NoArchive, before, entries, position_before_last
from chronolet.history.state import Latest, state_at
from chronolet.kernel.kind import Decider, Kind
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import HistoryMissing, Snapshot
from chronolet_schemas import codec, pod, registry
from chronolet_schemas.envelope import START, Entry, Event, Position, Record
from chronolet_schemas.keys import Shard, shard_for, shards_of
from chronolet_schemas.kube_events import Recorded
from chronolet_schemas.times import time_of


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """A state: the messages of an entity's events, in order."""

    texts: tuple[str, ...] = ()


def evolve(state: Messages, event: Event) -> Messages | None:
    if isinstance(event, pod.PodEnded):
        return None
    return Messages(texts=(*state.texts, event.message)) if isinstance(event, pod.SandboxBlocked) else state


def kind(name: str = "pod", shards: int = 4, *, format_: int = 1, at_start: tuple[str, ...] = ()) -> Kind[Messages]:
    decider = Decider(Messages(), lambda *_: (), evolve, lambda _: None, lambda _: ())
    return Kind(name=name, shards=shards, state=Messages, format=format_, decider=decider, at_start=at_start)


class ListedArchive:
    """An archive that is a list in memory."""

    def __init__(self, listed: Sequence[Entry] = ()) -> None:
        self.listed = list(listed)

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:
        found = [entry for entry in self.listed if after < entry.position <= upto]
        return (entry for entry in found if entry is found[-1] or wanted.meets(entry))

    def numbered(self, number: int) -> Entry | None:
        return next((entry for entry in self.listed if entry.position.n == number), None)

    def last_until(self, milliseconds: int, after: Position, upto: Position) -> Late:
        late = [one.position for one in self.listed if after < one.position <= upto and time_of(one) <= milliseconds]
        return Late(max(late, default=None))

    def checkpoints(self, upto: Position, kinds: Mapping[str, Version]) -> Mapping[str, Checkpoint]:
        """There are none."""
        return {}


class Node:
    """A node with a hand-written log."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.server = MemoryServer(lambda: self.now)
        self.store = MemoryStore(self.server)
        self.archive = ListedArchive()

    def note(self, entity: str, text: str) -> Position:
        return self.write(entity, pod.SandboxBlocked(pod=entity, uid="u", message=text))

    def end(self, entity: str) -> Position:
        return self.write(entity, pod.PodEnded(pod=entity, uid="u"))

    def write(self, entity: str, event: Event) -> Position:
        with self.server.changed:
            return self.server.append(
                Record(registry.type_of(type(event)), entity, "", "pod#1", "", codec.encode(event))
            )

    def trim(self, upto: Position) -> None:
        """Archive the entries up to this position, then trim them, as the keeper does: the server notes the time of the
        first entry that remains.
        """
        with self.server.changed:
            gone = [entry for entry in self.server.log if entry.position <= upto]
            self.archive.listed += gone
            self.server.log = [entry for entry in self.server.log if entry.position > upto]
            self.server.archived = self.server.trimmed = upto
            if self.server.log and self.server.log[0].type:
                first = self.server.log[0].position
                self.server.trimmed = Position(first.milliseconds, first.n - 1)

    def foreign(self) -> None:
        """Add an entry of another program, as `redis-cli XADD` does."""
        with self.server.changed:
            self.server.log.append(Entry(Position(self.now, 0), "", "", "", "", "", b""))
            self.server.last = Position(self.now, 0)

    def snapshot(self, shard: Shard, at: Position, format_: int = 1, **texts: tuple[str, ...]) -> None:
        images = {key.replace("_", "/"): EntityImage(state=Messages(texts=held)) for key, held in texts.items()}
        self.server.shard(shard).snapshot = Snapshot(at, format_, encode_states(images))

    def numbers(self, after: Position = START, upto: Position | None = None) -> list[int]:
        return [entry.position.n for entry in entries(self.store, self.archive, after, upto)]

    def texts(self, position: Position | None = None, **options: int) -> dict[str, tuple[str, ...]]:
        moment = state_at(self.store, self.archive, [kind(**options)], position)  # type: ignore[arg-type]
        return {key: state.texts for key, state in moment.states["pod"].items()}


@pytest.fixture
def node() -> Node:
    return Node()


def test_archive_and_stream_are_read_as_one_sequence(node: Node) -> None:
    at = [node.note("pod/a/b", str(number)) for number in range(10)]
    node.trim(at[5])
    assert node.numbers() == list(range(1, 11))
    assert node.numbers(at[2]) == [4, 5, 6, 7, 8, 9, 10]
    assert node.numbers(at[7]) == [9, 10]
    assert node.numbers(at[1], at[3]) == [3, 4]
    assert node.numbers(at[4], at[8]) == [6, 7, 8, 9]
    assert node.numbers(at[9]) == []


def test_entries_trimmed_during_a_read_come_from_the_archive(node: Node) -> None:
    at = [node.note("pod/a/b", str(number)) for number in range(1_500)]
    seen = []
    for entry in entries(node.store, node.archive):
        seen.append(entry.position.n)
        if entry.position.n == 3:
            node.trim(at[1_000])
    assert seen == list(range(1, 1_501))


@pytest.mark.parametrize("kept", [[], [0, 1, 2], [0, 1, 2, 4, 5], [2, 3, 4, 5]])
def test_a_gap_in_the_archive_is_an_error(node: Node, kept: list[int]) -> None:
    at = [node.note("pod/a/b", str(number)) for number in range(10)]
    node.trim(at[5])
    node.archive.listed = [node.archive.listed[index] for index in kept]
    with pytest.raises(HistoryMissing, match="the archive files are not here"):
        node.numbers()
    assert node.numbers(at[5]) == [7, 8, 9, 10]


def test_without_snapshots_states_are_folded_from_the_beginning(node: Node) -> None:
    node.note("pod/a/web", "one")
    node.note("pleg/node", "not a pod")
    node.note("shard/pod/0", "the kernel's")
    node.note("pod/a/web", "two")
    node.note("pod/a/gone", "x")
    node.end("pod/a/gone")
    assert node.texts() == {"a/web": ("one", "two")}


def test_an_entity_that_ended_starts_from_its_initial_state(node: Node) -> None:
    node.note("pod/a/web", "one")
    node.end("pod/a/web")
    node.note("pod/a/web", "two")
    assert node.texts() == {"a/web": ("two",)}


def test_states_at_a_past_position(node: Node) -> None:
    first = node.note("pod/a/web", "one")
    second = node.end("pod/a/web")
    node.note("pod/a/web", "two")
    assert node.texts(first) == {"a/web": ("one",)}
    assert node.texts(second) == {}
    assert node.texts(START) == {}


def test_folding_starts_at_the_snapshot_and_repeats_no_entry(node: Node) -> None:
    at = [node.note("pod/a/web", text) for text in ("one", "two", "three")]
    shard = shard_for("pod", 4, "a/web")
    node.snapshot(shard, at[1], a_web=("from the snapshot",))
    assert node.texts() == {"a/web": ("from the snapshot", "three")}
    assert node.texts(at[1]) == {"a/web": ("from the snapshot",)}
    assert node.texts(at[0]) == {"a/web": ("one",)}, "a snapshot after the position is not used"


def test_a_snapshot_of_another_format_or_unreadable_is_ignored(node: Node) -> None:
    at = node.note("pod/a/web", "one")
    shard = shard_for("pod", 4, "a/web")
    node.snapshot(shard, at, format_=2, a_web=("from a later release",))
    assert node.texts() == {"a/web": ("one",)}
    node.server.shard(shard).snapshot = Snapshot(at, 1, b"\xc1")
    assert node.texts() == {"a/web": ("one",)}


def test_with_snapshots_of_all_shards_the_archive_is_not_needed(node: Node) -> None:
    at = [node.note("pod/a/web", text) for text in ("one", "two", "three")]
    for shard in shards_of("pod", 4):
        node.snapshot(shard, at[1])
    node.trim(at[1])
    node.archive.listed = []
    assert node.texts() == {"a/web": ("three",)}


def test_initial_entities_exist_before_any_event(node: Node) -> None:
    moment = state_at(node.store, NoArchive(), [kind("pleg", 1, at_start=("node",))])
    assert moment.states == {"pleg": {"node": Messages()}}
    assert moment.position == START


def test_undecodable_entries_are_named_and_omitted(node: Node) -> None:
    node.note("pod/a/web", "one")
    with node.server.changed:
        at = node.server.append(Record("pod.Later@1", "pod/a/web", "", "pod#1", "", b"\x80"))
        node.server.append(Record("pleg.Later@1", "pleg/node", "", "pleg#1", "", b"\x80"))
    moment = state_at(node.store, NoArchive(), [kind()])
    assert moment.states["pod"] == {"a/web": Messages(texts=("one",))}
    assert moment.unreadable == (at,)


STEPS = st.lists(
    st.tuples(st.sampled_from(["a/x", "a/y", "b/x", "c/z"]), st.sampled_from(["note", "note", "end"])), max_size=25
)


@given(steps=STEPS, data=st.data())
def test_any_snapshots_and_any_trimming_give_the_states_of_the_whole_log(
    steps: list[tuple[str, str]], data: st.DataObject
) -> None:
    node = Node()
    at = [START]
    for number, (key, what) in enumerate(steps):
        node.now += data.draw(st.integers(0, 2))
        at.append(node.note(f"pod/{key}", str(number)) if what == "note" else node.end(f"pod/{key}"))
    expected = [node.texts(position) for position in at]
    cuts = []
    for shard in shards_of("pod", 4):
        cut = data.draw(st.integers(0, len(at) - 1))
        cuts.append(cut)
        own = {key: held for key, held in expected[cut].items() if shard_for("pod", 4, key) == shard}
        images = {key: EntityImage(state=Messages(texts=held)) for key, held in own.items()}
        node.server.shard(shard).snapshot = Snapshot(at[cut], 1, encode_states(images))
    node.trim(at[data.draw(st.integers(0, min(cuts)))])
    assert [node.texts(position) for position in at] == expected
    assert node.texts() == expected[-1]
    node.archive.listed = []
    assert node.texts() == expected[-1]


@given(steps=STEPS, data=st.data())
def test_repeated_reads_give_the_states_of_a_new_read(steps: list[tuple[str, str]], data: st.DataObject) -> None:
    """Between the reads, the log may grow, be trimmed, lose its end, or be replaced by a new log."""
    node = Node()
    latest = Latest(node.store, node.archive, [kind()])
    for number, (key, what) in enumerate(steps):
        node.now += data.draw(st.integers(1, 3))
        if what == "note":
            node.note(f"pod/{key}", str(number))
        else:
            node.end(f"pod/{key}")
        match data.draw(st.sampled_from(["go on", "go on", "trim", "lose the end", "lose all", "skip"])):
            case "trim" if node.server.log:
                node.trim(data.draw(st.sampled_from(node.server.log)).position)
            case "lose the end" if node.server.log:
                node.server.log.pop()
                node.server.last = node.server.log[-1].position if node.server.log else node.server.trimmed
            case "lose all":
                node.server.log, node.server.last, node.server.run = [], START, f"run {number}"
                node.server.archived = node.server.trimmed = START
                node.archive.listed = []
            case "skip":
                continue
        expected = state_at(node.store, node.archive, [kind()])
        assert latest.moment() == expected
        assert latest.moment() == expected


def test_a_repeated_read_reads_only_new_entries(node: Node) -> None:
    node.note("pod/a/web", "one")
    latest = Latest(node.store, node.archive, [kind()])
    latest.moment()
    node.note("pod/a/web", "two")
    node.trim(node.server.log[0].position)
    node.archive.listed = []
    with pytest.raises(HistoryMissing):
        node.texts()
    assert latest.moment().states["pod"] == {"a/web": Messages(texts=("one", "two"))}


@given(gaps=st.lists(st.integers(0, 3), min_size=1, max_size=30), count=st.integers(0, 35))
def test_the_last_entries_are_found_by_time(gaps: list[int], count: int) -> None:
    node = Node()
    for gap in gaps:
        node.now += gap
        node.note("pod/a/b", "x")
    after = position_before_last(node.store, count)
    assert node.numbers(after) == list(range(max(1, len(gaps) - count + 1), len(gaps) + 1))


def test_the_position_before_a_time_precedes_all_entries_of_that_time(node: Node) -> None:
    node.note("pod/a/b", "x")
    node.now += 10
    node.note("pod/a/b", "x")
    node.note("pod/a/b", "x")
    assert node.numbers(before(node.now)) == [2, 3]
    assert node.numbers(before(node.now + 1)) == []
    assert node.numbers(before(0)) == [1, 2, 3]


def test_the_stream_may_be_trimmed_up_to_a_time_without_entries(node: Node) -> None:
    at = [node.note("pod/a/b", str(number)) for number in range(3)]
    node.now += 50
    late = node.note("pod/a/b", "late")
    node.trim(at[2])
    node.server.trimmed = Position(late.milliseconds, late.n - 1)
    assert node.numbers() == [1, 2, 3, 4]
    assert node.numbers(at[2]) == [4]
    assert node.numbers(before(node.now - 10)) == [4]
    node.archive.listed = []
    for after in (START, at[0], before(node.now - 10)):
        with pytest.raises(HistoryMissing):
            node.numbers(after)


def test_foreign_entries_have_their_own_numbers(node: Node) -> None:
    """Foreign entries, such as those written with `redis-cli XADD`, have no type, and a number out of sequence."""
    foreign = []
    for number in range(3):
        node.note("pod/a/b", str(number))
        node.now += 10
        with node.server.changed:
            foreign.append(Position(node.now, 0))
            node.server.log.append(Entry(foreign[-1], "", "", "", "", "", b""))
        node.now += 10
    assert node.numbers() == [1, 0, 2, 0, 3, 0]
    node.trim(foreign[1])
    assert node.numbers() == [1, 0, 2, 0, 3, 0]
    assert node.texts() == {"a/b": ("0", "1", "2")}


def test_entries_about_a_pod_are_found_whatever_kind_wrote_them(node: Node) -> None:
    node.write("pleg/node", pod.PodEnded(pod="a/web", uid="u"))
    node.note("pod/a/web", "own")
    node.write("pleg/node", pod.PodEnded(pod="a/webs", uid="u"))
    node.write("pleg/node", pod.SandboxBlocked(pod="b/web", uid="u", message="not a/web"))
    with node.server.changed:
        node.server.append(Record("pod.Odd@1", "x/y", "", "x#1", "", b"\xc1a/web"))
    assert [entry.position.n for entry in entries(node.store, node.archive) if concerns_pod(entry, "a/web")] == [1, 2]


def test_an_event_that_names_a_pod_in_two_fields_is_about_it(node: Node) -> None:
    for name in ("web", "webs"):
        event = Recorded(
            object_kind="Pod", namespace="a", name=name, severity="Normal", reason="Unhealthy", message="m"
        )
        node.write(f"prober/a/{name}/app/Liveness", event)
    assert [entry.position.n for entry in entries(node.store, node.archive) if concerns_pod(entry, "a/web")] == [1]
