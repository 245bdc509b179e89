"""The window of `replay --step`: next, back and jump show the same steps as a replay from the beginning."""

from collections.abc import Iterator
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.replay.frames import Frame
from chronolet.cli.replay.stepping import Window, keys
from chronolet.cli.replay.wanted import Wanted
from chronolet.cli.session import Session
from chronolet.history.when import Located
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.node.settings.common import resolve_common
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Entry, Position
from tests.cli.support.busy_node import busy
from tests.cli.support.written_node import WrittenNode

BEGINNING = Located(START, 0)


def window(node: WrittenNode, begin: Located = BEGINNING, kept: int = 1_000) -> Window:
    session = Session(
        resolve_common({"hostname_override": "node-1"}, {}, ("hostname_override",)),
        node.services(),
        node.open_store(),
        node.archive,
    )
    return Window(session, Wanted(), begin, Located(node.server.last, node.now), kept)


def all_frames(one: Window) -> list[Frame]:
    return list(iter(one.next, None))


@pytest.mark.parametrize(
    ("pressed", "expected"),
    [
        ("n", [("n", "")]),
        ("bb", [("b", ""), ("b", "")]),
        ("\x1b[A", [("\x1b[A", "")]),
        ("n\x1b[B\x1b[Aq", [("n", ""), ("\x1b[B", ""), ("\x1b[A", ""), ("q", "")]),
        ("\x1bOA\x1bOBn", [("\x1bOA", ""), ("\x1bOB", ""), ("n", "")]),  # arrows in application mode
        ("\x1b[3~\x1b[1;5Cn", [("\x1b[3~", ""), ("\x1b[1;5C", ""), ("n", "")]),  # Delete, Ctrl and an arrow
        ("\r\n", [("\r", ""), ("\n", "")]),
        ("\x1b", [("\x1b", "")]),
        ("j", [("j", "")]),
        ("nj-15m\rnq", [("n", ""), ("j", "-15m\r"), ("n", ""), ("q", "")]),
        ("j#1b", [("j", "#1b")]),
        ("j\r\nq", [("j", "\r\n"), ("q", "")]),
        ("", []),
    ],
)
def test_keys_that_were_pressed_quickly_are_separate_ones(pressed: str, expected: list[tuple[str, str]]) -> None:
    assert list(keys(pressed)) == expected


def test_back_ends_where_the_window_begins() -> None:
    every = all_frames(window(NODE))
    shown = window(NODE, Located(every[4].step.position, 0), kept=2)
    assert all_frames(shown) == every[5:]
    assert list(iter(shown.back, None)) == every[-2:4:-1]
    shown.jump(Located(every[4].step.position, 0))
    assert shown.back() is None


def test_a_part_of_the_log_that_is_missing_is_no_end_of_the_log() -> None:
    node = busy()
    every = all_frames(window(node))
    shown = window(node)
    assert shown.next() == every[0]
    whole = shown._node.entries

    def missing(after: Position = START, *_: object, **__: object) -> Iterator[Entry]:
        raise HistoryMissing(f"after {after}")

    shown.jump(BEGINNING)
    assert shown.next() == every[0]
    shown._more = cast("Iterator[Frame]", map(missing, [START]))
    shown._node.entries = missing  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(HistoryMissing):
            shown.next()
    shown._node.entries = whole  # type: ignore[method-assign]
    assert all_frames(shown) == every[1:]


@pytest.mark.parametrize("kept", [2, 3, 5, 1_000])
def test_back_shows_the_same_steps_as_next_did(kept: int) -> None:
    shown = window(busy(), kept=kept)
    found = all_frames(shown)
    assert len(found) >= 15
    assert shown.next() is None
    assert list(iter(shown.back, None)) == found[-2::-1]
    assert shown.back() is None
    assert all_frames(shown) == found[1:], "the first one is still the present one"


class Model:
    """What the window must do, over the list of all steps. `index`: the last step that was passed; `fresh`: right after
    a jump, no step is the present one.
    """

    def __init__(self, every: list[Frame]) -> None:
        self.every = every
        self.index = -1
        self.fresh = True

    def jump(self, index: int) -> None:
        self.index, self.fresh = index, True

    def next(self) -> Frame | None:
        return self._go(self.index + 1)

    def back(self) -> Frame | None:
        return self._go(self.index if self.fresh else self.index - 1)

    def _go(self, index: int) -> Frame | None:
        if not 0 <= index < len(self.every):
            return None
        self.index, self.fresh = index, False
        return self.every[index]


NODE = busy()
EVERY = all_frames(window(NODE))
KEYS = st.one_of(st.just("n"), st.just("b"), st.integers(-1, len(EVERY) - 1))


@given(st.lists(KEYS, max_size=60), st.integers(2, 9))
def test_any_keys_lead_to_the_steps_that_a_list_of_all_steps_has(keys: list[str | int], kept: int) -> None:
    shown, model = window(NODE, kept=kept), Model(EVERY)
    for key in keys:
        if isinstance(key, int):
            shown.jump(BEGINNING if key < 0 else Located(EVERY[key].step.position, 0))
            model.jump(key)
        elif key == "n":
            assert shown.next() == model.next()
        else:
            assert shown.back() == model.back()


def test_far_back_is_replayed_in_parts_and_foreign_entries_do_not_matter() -> None:
    node = busy()
    for number in range(500):
        node.now += 1
        node.write("shard/pod", kernel.ClockJumped(by_milliseconds=number))
        if number == 250:
            node.server.log.append(Entry(Position(node.now, 7), "", "", "", "", "", b""))
    every = all_frames(window(node))
    assert len(every) > 500
    shown = window(node, kept=4)
    assert all_frames(shown) == every
    for expected in every[-2:-300:-1]:
        assert shown.back() == expected
