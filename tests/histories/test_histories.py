"""Each recorded history of a bug ends with the right decision."""

from pathlib import Path

import pytest

from tests.deciders.given import given
from tests.histories.history import FOLDER, History, expected, shown

FILES = sorted(FOLDER.glob("*/*.json"))


def test_there_are_histories_of_most_kinds() -> None:
    assert len(FILES) == 20, "a history that is added or removed changes this number"
    assert len({path.parent.name for path in FILES}) >= 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_history_ends_with_the_right_decision(path: Path) -> None:
    history = History.read(path)
    assert history.log
    scene = given(history.decider, *history.events_of(history.log))
    before = len(scene.history)
    scene.when(history.decided, at=history.now)
    assert tuple(scene.history[before:]) == history.events_of(history.events), history.right
    assert shown(scene.effects.values()) == expected(history.effects), history.right
