"""History: entries from archive and stream as one, states folded from snapshots or without, the last so many."""

from collections.abc import Iterator, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.history.entries import NoArchive, before, concerns_pod, entries, position_before_last
from chronolet.history.state import Latest, state_at
from chronolet.kernel.kind import Decider, Kind
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import HistoryMissing, Snapshot
from chronolet_schemas import codec, pod, registry
from chronolet_schemas.envelope import START, Entry, Event, Position, Record
from chronolet_schemas.keys import Shard, shard_for, shards_of


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of an entity's events, in order."""

    words: tuple[str, ...] = ()


def evolve(state: Heard, event: Event) -> Heard | None:
    if isinstance(event, pod.PodEnded):
        return None
    return Heard(words=(*state.words, event.message)) if isinstance(event, pod.SandboxBlocked) else state


def kind(name: str = "pod", shards: int = 4, *, format_: int = 1, at_start: tuple[str, ...] = ()) -> Kind[Heard]:
    decider = Decider(Heard(), lambda *_: (), evolve, lambda _: None, lambda _: ())
    return Kind(name=name, shards=shards, state=Heard, format=format_, decider=decider, at_start=at_start)


class ListedArchive:
    """What the keeper would have put into files."""

    def __init__(self, listed: Sequence[Entry] = ()) -> None:
        self.listed = list(listed)

    def entries(self, after: Position, upto: Position) -> Iterator[Entry]:
        return (entry for entry in self.listed if after < entry.position <= upto)


class Node:
    """A log written by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.server = MemoryServer(lambda: self.now)
        self.store = MemoryStore(self.server)
        self.archive = ListedArchive()

    def say(self, entity: str, word: str) -> Position:
        return self.write(entity, pod.SandboxBlocked(pod=entity, uid="u", message=word))

    def end(self, entity: str) -> Position:
        return self.write(entity, pod.PodEnded(pod=entity, uid="u"))

    def write(self, entity: str, event: Event) -> Position:
        with self.server.changed:
            return self.server.append(
                Record(registry.type_of(type(event)), entity, "", "pod#1", "", codec.encode(event))
            )

    def trim(self, upto: Position) -> None:
        """What the keeper does: archive, then trim."""
        with self.server.changed:
            gone = [entry for entry in self.server.log if entry.position <= upto]
            self.archive.listed += gone
            self.server.log = [entry for entry in self.server.log if entry.position > upto]
            self.server.archived = self.server.trimmed = upto

    def snapshot(self, shard: Shard, at: Position, format_: int = 1, **words: tuple[str, ...]) -> None:
        images = {key.replace("_", "/"): EntityImage(state=Heard(words=said)) for key, said in words.items()}
        self.server.shard(shard).snapshot = Snapshot(at, format_, encode_states(images))

    def numbers(self, after: Position = START, upto: Position | None = None) -> list[int]:
        return [entry.position.n for entry in entries(self.store, self.archive, after, upto)]

    def words(self, position: Position | None = None, **options: int) -> dict[str, tuple[str, ...]]:
        moment = state_at(self.store, self.archive, [kind(**options)], position)  # type: ignore[arg-type]
        return {key: state.words for key, state in moment.states["pod"].items()}


@pytest.fixture
def node() -> Node:
    return Node()


def test_archive_and_stream_read_as_one(node: Node) -> None:
    at = [node.say("pod/a/b", str(number)) for number in range(10)]
    node.trim(at[5])
    assert node.numbers() == list(range(1, 11))
    assert node.numbers(at[2]) == [4, 5, 6, 7, 8, 9, 10]
    assert node.numbers(at[7]) == [9, 10]
    assert node.numbers(at[1], at[3]) == [3, 4]
    assert node.numbers(at[4], at[8]) == [6, 7, 8, 9]
    assert node.numbers(at[9]) == []


def test_what_is_trimmed_while_it_is_read_comes_from_the_archive(node: Node) -> None:
    at = [node.say("pod/a/b", str(number)) for number in range(1_500)]
    seen = []
    for entry in entries(node.store, node.archive):
        seen.append(entry.position.n)
        if entry.position.n == 3:
            node.trim(at[1_000])
    assert seen == list(range(1, 1_501))


@pytest.mark.parametrize("kept", [[], [0, 1, 2], [0, 1, 2, 4, 5], [2, 3, 4, 5]])
def test_a_hole_in_the_archive_is_said_not_passed_over(node: Node, kept: list[int]) -> None:
    at = [node.say("pod/a/b", str(number)) for number in range(10)]
    node.trim(at[5])
    node.archive.listed = [node.archive.listed[index] for index in kept]
    with pytest.raises(HistoryMissing, match="the archive files are not here"):
        node.numbers()
    assert node.numbers(at[5]) == [7, 8, 9, 10]


def test_states_are_folded_from_the_beginning_without_snapshots(node: Node) -> None:
    node.say("pod/a/web", "one")
    node.say("pleg/node", "not a pod")
    node.say("shard/pod/0", "the kernel's")
    node.say("pod/a/web", "two")
    node.say("pod/a/gone", "x")
    node.end("pod/a/gone")
    assert node.words() == {"a/web": ("one", "two")}


def test_an_entity_that_ended_begins_anew(node: Node) -> None:
    node.say("pod/a/web", "one")
    node.end("pod/a/web")
    node.say("pod/a/web", "two")
    assert node.words() == {"a/web": ("two",)}


def test_a_moment_of_the_past(node: Node) -> None:
    first = node.say("pod/a/web", "one")
    second = node.end("pod/a/web")
    node.say("pod/a/web", "two")
    assert node.words(first) == {"a/web": ("one",)}
    assert node.words(second) == {}
    assert node.words(START) == {}


def test_a_snapshot_shortens_the_way_and_its_own_tail_is_not_told_twice(node: Node) -> None:
    at = [node.say("pod/a/web", word) for word in ("one", "two", "three")]
    shard = shard_for("pod", 4, "a/web")
    node.snapshot(shard, at[1], a_web=("from the snapshot",))
    assert node.words() == {"a/web": ("from the snapshot", "three")}
    assert node.words(at[1]) == {"a/web": ("from the snapshot",)}
    assert node.words(at[0]) == {"a/web": ("one",)}, "a snapshot from after the moment is of no use"


def test_a_snapshot_of_another_format_or_of_rubbish_is_ignored(node: Node) -> None:
    at = node.say("pod/a/web", "one")
    shard = shard_for("pod", 4, "a/web")
    node.snapshot(shard, at, format_=2, a_web=("from a later release",))
    assert node.words() == {"a/web": ("one",)}
    node.server.shard(shard).snapshot = Snapshot(at, 1, b"\xc1")
    assert node.words() == {"a/web": ("one",)}


def test_with_snapshots_of_all_shards_the_archive_is_not_needed(node: Node) -> None:
    at = [node.say("pod/a/web", word) for word in ("one", "two", "three")]
    for shard in shards_of("pod", 4):
        node.snapshot(shard, at[1])
    node.trim(at[1])
    node.archive.listed = []
    assert node.words() == {"a/web": ("three",)}


def test_entities_from_the_beginning_are_there_before_any_event(node: Node) -> None:
    moment = state_at(node.store, NoArchive(), [kind("pleg", 1, at_start=("node",))])
    assert moment.states == {"pleg": {"node": Heard()}}
    assert moment.position == START


def test_what_cannot_be_decoded_is_named_and_left_out(node: Node) -> None:
    node.say("pod/a/web", "one")
    with node.server.changed:
        at = node.server.append(Record("pod.Later@1", "pod/a/web", "", "pod#1", "", b"\x80"))
        node.server.append(Record("pleg.Later@1", "pleg/node", "", "pleg#1", "", b"\x80"))
    moment = state_at(node.store, NoArchive(), [kind()])
    assert moment.states["pod"] == {"a/web": Heard(words=("one",))}
    assert moment.unreadable == (at,)


STEPS = st.lists(
    st.tuples(st.sampled_from(["a/x", "a/y", "b/x", "c/z"]), st.sampled_from(["say", "say", "end"])), max_size=25
)


@given(steps=STEPS, data=st.data())
def test_any_snapshots_and_any_trimming_tell_the_same_as_the_whole_log(
    steps: list[tuple[str, str]], data: st.DataObject
) -> None:
    node = Node()
    at = [START]
    for number, (key, what) in enumerate(steps):
        node.now += data.draw(st.integers(0, 2))
        at.append(node.say(f"pod/{key}", str(number)) if what == "say" else node.end(f"pod/{key}"))
    expected = [node.words(position) for position in at]
    cuts = []
    for shard in shards_of("pod", 4):
        cut = data.draw(st.integers(0, len(at) - 1))
        cuts.append(cut)
        own = {key: said for key, said in expected[cut].items() if shard_for("pod", 4, key) == shard}
        images = {key: EntityImage(state=Heard(words=said)) for key, said in own.items()}
        node.server.shard(shard).snapshot = Snapshot(at[cut], 1, encode_states(images))
    node.trim(at[data.draw(st.integers(0, min(cuts)))])
    assert [node.words(position) for position in at] == expected
    assert node.words() == expected[-1]
    node.archive.listed = []
    assert node.words() == expected[-1]


@given(steps=STEPS, data=st.data())
def test_asked_again_and_again_it_is_the_same_moment(steps: list[tuple[str, str]], data: st.DataObject) -> None:
    """Next to trimming, a log that loses its end, and one that is begun anew."""
    node = Node()
    latest = Latest(node.store, node.archive, [kind()])
    for number, (key, what) in enumerate(steps):
        node.now += data.draw(st.integers(1, 3))
        if what == "say":
            node.say(f"pod/{key}", str(number))
        else:
            node.end(f"pod/{key}")
        match data.draw(st.sampled_from(["go on", "go on", "trim", "lose the end", "lose all", "unasked"])):
            case "trim" if node.server.log:
                node.trim(data.draw(st.sampled_from(node.server.log)).position)
            case "lose the end" if node.server.log:
                node.server.log.pop()
                node.server.last = node.server.log[-1].position if node.server.log else node.server.trimmed
            case "lose all":
                node.server.log, node.server.last, node.server.run = [], START, f"run {number}"
                node.server.archived = node.server.trimmed = START
                node.archive.listed = []
            case "unasked":
                continue
        expected = state_at(node.store, node.archive, [kind()])
        assert latest.moment() == expected
        assert latest.moment() == expected


def test_asked_again_only_what_is_new_is_read(node: Node) -> None:
    node.say("pod/a/web", "one")
    latest = Latest(node.store, node.archive, [kind()])
    latest.moment()
    node.say("pod/a/web", "two")
    node.trim(node.server.log[0].position)
    node.archive.listed = []
    with pytest.raises(HistoryMissing):
        node.words()
    assert latest.moment().states["pod"] == {"a/web": Heard(words=("one", "two"))}


@given(gaps=st.lists(st.integers(0, 3), min_size=1, max_size=30), count=st.integers(0, 35))
def test_the_last_so_many_are_found_by_time(gaps: list[int], count: int) -> None:
    node = Node()
    for gap in gaps:
        node.now += gap
        node.say("pod/a/b", "x")
    after = position_before_last(node.store, count)
    assert node.numbers(after) == list(range(max(1, len(gaps) - count + 1), len(gaps) + 1))


def test_before_a_time_is_before_all_that_happened_then(node: Node) -> None:
    node.say("pod/a/b", "x")
    node.now += 10
    node.say("pod/a/b", "x")
    node.say("pod/a/b", "x")
    assert node.numbers(before(node.now)) == [2, 3]
    assert node.numbers(before(node.now + 1)) == []
    assert node.numbers(before(0)) == [1, 2, 3]


def test_the_stream_may_have_been_trimmed_up_to_a_time_at_which_nothing_happened(node: Node) -> None:
    at = [node.say("pod/a/b", str(number)) for number in range(3)]
    node.now += 50
    late = node.say("pod/a/b", "late")
    node.trim(at[2])
    node.server.trimmed = Position(late.milliseconds, late.n - 1)
    assert node.numbers() == [1, 2, 3, 4]
    assert node.numbers(at[2]) == [4]
    assert node.numbers(before(node.now - 10)) == [4]
    node.archive.listed = []
    for after in (START, at[0], before(node.now - 10)):
        with pytest.raises(HistoryMissing):
            node.numbers(after)


def test_what_somebody_else_put_into_the_log_has_a_number_of_its_own(node: Node) -> None:
    """As `redis-cli XADD` would: no type, and no number that goes on from the one before."""
    foreign = []
    for number in range(3):
        node.say("pod/a/b", str(number))
        node.now += 10
        with node.server.changed:
            foreign.append(Position(node.now, 0))
            node.server.log.append(Entry(foreign[-1], "", "", "", "", "", b""))
        node.now += 10
    assert node.numbers() == [1, 0, 2, 0, 3, 0]
    node.trim(foreign[1])
    assert node.numbers() == [1, 0, 2, 0, 3, 0]
    assert node.words() == {"a/b": ("0", "1", "2")}


def test_what_is_about_a_pod_is_found_whoever_wrote_it(node: Node) -> None:
    node.write("pleg/node", pod.PodEnded(pod="a/web", uid="u"))
    node.say("pod/a/web", "own")
    node.write("pleg/node", pod.PodEnded(pod="a/webs", uid="u"))
    node.write("pleg/node", pod.SandboxBlocked(pod="b/web", uid="u", message="not a/web"))
    with node.server.changed:
        node.server.append(Record("pod.Odd@1", "x/y", "", "x#1", "", b"\xc1a/web"))
    assert [entry.position.n for entry in entries(node.store, node.archive) if concerns_pod(entry, "a/web")] == [1, 2]
