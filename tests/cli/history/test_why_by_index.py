"""`chronolet why` answers the same from the stream, from archive files, and from parts of them by their indexes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.history.archives import NodeArchive
from chronolet.history.why.facts import Fact, Missing
from chronolet_schemas import codec, pleg, pod, prober, registry
from chronolet_schemas.envelope import START, Entry, Event, Position
from chronolet_schemas.times import with_time
from tests.cli.support.archived_node import archive_log
from tests.cli.support.written_node import WrittenNode
from tests.history.why.stories import NAME, SECOND, Story
from tests.history.why.test_gaps import STORIES

OTHER: dict[str, Any] = {"pod": "default/web-2", "uid": "u2", "container": "app", "attempt": 0, "id": "b0"}
STARTED: dict[str, Any] = {**OTHER, "started_at": 1}
NOISE: tuple[tuple[str, Event], ...] = (
    ("pod/default/web-2", pod.ContainerStarted(**STARTED)),
    ("prober/default/web-2/app/Liveness", prober.ResultChanged(**STARTED, probe="Liveness", result="success")),
    ("pleg/node", pleg.ContainerStarted(**STARTED)),
    ("pleg/node", pleg.RelistWorking(containers=1)),
)
"""What happens to another pod, after each step of a story."""
FILE_ENTRIES = 17
SILENCE = 30 * SECOND
QUESTIONS = ((), ("--nth", "1"), ("-c", "app"), ("-o", "json"))


def written(story: Story) -> WrittenNode:
    """Return a node whose log has the story, and in between what happens to another pod."""
    node = WrittenNode()
    node.now = story.now
    node.server.log.clear()
    for fact in story.facts:
        for entity, event in ((fact.entity, fact.event), *NOISE):
            node.server.last = Position(fact.position.milliseconds, len(node.server.log) + 1)
            node.server.log.append(_entry(node.server.last, entity, event, fact))
    return node


def _entry(position: Position, entity: str, event: Event, fact: Fact) -> Entry:
    type_, data = "pod.Unheard@1", b"\x80"
    if not isinstance(event, Missing):
        type_, data = registry.type_of(type(event)), codec.encode(event)
    if fact.at != position.milliseconds:
        data = with_time(data, fact.at)
    return Entry(position, type_, entity or f"pod/{NAME}", "", fact.actor, "", data)


def answers(node: WrittenNode) -> list[str]:
    """Return what is printed in answer to each question, with the exit status."""
    found = [node.run("why", "web", *words) for words in QUESTIONS]
    return [f"{one.status}: {one.output}{one.errors}" for one in found]


class Counted(NodeArchive):
    """An archive that counts the entries that it returns."""

    read = 0

    def __init__(self, archive: NodeArchive) -> None:
        self.__dict__.update(archive.__dict__)

    def entries(self, *arguments: Any) -> Iterator[Entry]:
        for entry in super().entries(*arguments):
            self.read += 1
            yield entry


@pytest.mark.parametrize("story", [story for _, story in STORIES], ids=[what for what, _ in STORIES])
def test_the_answers_are_the_same(story: Callable[[], Story], tmp_path: Path) -> None:
    node = written(story())
    expected = answers(node)
    assert expected[0].startswith("0: ")
    for indexed in (False, True):
        again = written(story())
        archive_log(again, tmp_path / str(indexed), file_entries=FILE_ENTRIES, indexed=indexed)
        assert answers(again) == expected, f"{indexed=}"


@pytest.mark.parametrize("story", [story for _, story in STORIES[::3]], ids=[what for what, _ in STORIES[::3]])
def test_the_answers_without_a_file_of_the_archive_are_the_same(story: Callable[[], Story], tmp_path: Path) -> None:
    whole = answers(written(story()))
    entries = len(written(story()).server.log)
    for lost in range(1, entries - 1, FILE_ENTRIES):
        found = []
        for indexed in (False, True):
            node = written(story())
            folder = tmp_path / f"{lost}-{indexed}"
            archive_log(node, folder, file_entries=FILE_ENTRIES, indexed=indexed, lost={lost})
            found.append([text.replace(str(folder), "") for text in answers(node)])
        assert found[0] == found[1]
        assert found[0] != whole


NAMED = msgspec.msgpack.encode({"pod": "default/web-2", "uid": 7, "message": "default/web is next to it"})
ODD: dict[str, tuple[str, str, bytes, bool]] = {
    "another pod's, of a known type": ("pleg/node", "pleg.ContainerDied@1", NAMED, False),
    "another pod's, of a version that never was": ("pleg/node", "pleg.ContainerDied@0", NAMED, True),
    "another pod's, of a later version": ("pleg/node", "pleg.ContainerDied@99", NAMED, True),
    "another pod's, of a version that is no number": ("pleg/node", "pleg.ContainerDied@\u00b2", NAMED, True),
    "another pod's, with damaged data": ("pleg/node", "pleg.ContainerDied@1", NAMED[:-1], True),
    "another pod's own": ("pod/default/web-2", "pod.Unheard@1", NAMED, False),
    "the pod's own": (f"pod/{NAME}", "pod.ContainerExited@1", b"\xc1", True),
    "about the node": ("pleg/node", "pleg.StreamLost@1", b"\xc1", True),
}
"""Entries that cannot be decoded: entity, type, data, and whether they may be about the pod."""


@pytest.mark.parametrize(("entity", "type_", "data", "about"), ODD.values(), ids=ODD)
def test_what_cannot_be_decoded_counts_the_same_however_it_is_read(
    tmp_path: Path, entity: str, type_: str, data: bytes, *, about: bool
) -> None:
    def damaged() -> WrittenNode:
        node = written(Story().runs().dies(0, sent=None).restarts(1))
        begun = registry.type_of(pod.ContainerStarted), f"pod/{NAME}"
        at = next(at for at, one in enumerate(node.server.log) if (one.type, one.entity) == begun) + 1
        node.server.log[at] = node.server.log[at]._replace(entity=entity, type=type_, data=data)
        return node

    expected = answers(damaged())
    assert expected[0].startswith("0: ")
    assert ("cannot be decoded" in expected[0]) is about
    assert ("the log may lack a stop by chronolet" in expected[0]) is about
    for indexed in (False, True):
        node = damaged()
        archive_log(node, tmp_path / str(indexed), file_entries=FILE_ENTRIES, indexed=indexed)
        assert answers(node) == expected, f"{indexed=}"


def test_a_damaged_block_is_not_needed_or_makes_the_answer_less_certain(tmp_path: Path) -> None:
    """The history never begins after the first step of the timeline."""
    question = ("why", "web", "--nth", "1", "-o", "json")
    story = Story().runs().dies(1).restarts(1)
    whole = json.loads(written(story).run(*question).output)
    needed = set()
    for at in range(1, FILE_ENTRIES, 2):
        node = written(story)
        archive = archive_log(node, tmp_path / str(at), file_entries=FILE_ENTRIES, indexed=True).current()
        path = Path(archive.storage.place(archive.files()[0].name))
        content = bytearray(path.read_bytes())
        content[len(content) * at // FILE_ENTRIES] ^= 0xFF
        path.write_bytes(content)
        found = json.loads(node.run(*question).output)
        first = Position.parse(found["timeline"][0]["position"])
        assert Position.parse(found["history"]["begin"]) <= first
        needed.add(bool(found["history"]["gaps"]))
        assert found["chain"] == whole["chain"] or "the missing entries of the log" in found["settledBy"]
    assert needed == {True, False}


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("silent", [True, False])
def test_a_death_is_late_because_nothing_was_written_whatever_it_was_about(
    tmp_path: Path, *, silent: bool, indexed: bool
) -> None:
    story = Story().runs()
    died_at = story.now
    if not silent:
        story.add("pleg/node", pleg.RelistWorking(containers=1), after=SECOND // 2)
    story.now = died_at + SILENCE
    node = written(story.dies(3, ago=story.now + SECOND - died_at).restarts(1))
    archive_log(node, tmp_path, file_entries=FILE_ENTRIES, indexed=indexed)
    sentence = node.run("why", "web").output.splitlines()[0]
    assert f"chronolet recorded that only {SILENCE / SECOND + 1:.1f} s later" in sentence
    assert ("; nothing was written to the log meanwhile" in sentence) is silent


def test_little_else_is_read_by_indexes(tmp_path: Path) -> None:
    story = Story().runs().dies(1).restarts(1)
    node = written(story)
    count = len(node.server.log)
    node.archive = counted = Counted(archive_log(node, tmp_path, file_entries=FILE_ENTRIES, indexed=True))
    found = json.loads(node.run("why", "web", "--nth", "1", "-o", "json").output)
    assert found["history"] == {"begin": str(story.facts[0].position), "gaps": []}
    files = -(-count // FILE_ENTRIES)
    assert len(story.facts) < counted.read <= len(story.facts) + files + 2 < count / 2
    assert count == len(story.facts) * (1 + len(NOISE))
    assert next(counted.entries(START, node.store.last())).position.n == 1
