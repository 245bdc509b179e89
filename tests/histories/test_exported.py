"""Recorded runs of earlier releases: this release reads their events, and shows the objects that they showed."""

import json
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.printing.differences import ABSENT, differences
from chronolet.testing.history import History

FOLDERS = sorted((Path(__file__).parent / "exported").iterdir())
OBJECTS = ("pods", "devices", "images")


def recorded(folder: Path, name: str) -> list[Any]:
    items: list[Any] = json.loads((folder / f"{name}.json").read_text())["items"]
    return items


def test_there_is_a_run_of_each_release() -> None:
    assert [path.name for path in FOLDERS] == ["0.2.0.dev0"], "a run that is added or removed changes this list"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_event_of_the_run_is_read(folder: Path) -> None:
    past = History.read(folder / "run.jsonl")
    assert len(past.events()) == len(past.entries) > 100


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_objects_at_the_end_of_the_run_are_those_that_were_printed(folder: Path, name: str) -> None:
    """A later release may add fields, and change none."""
    past = History.read(folder / "run.jsonl")
    view = past.at(past.entries[-1].position)
    now = list({"pods": view.pods.values(), "devices": view.devices, "images": view.images}[name])
    then = recorded(folder, name)
    assert len(now) == len(then) > 0
    changed = [one for before, after in zip(then, now, strict=True) for one in differences(before, after)]
    assert [one for one in changed if one.before is not ABSENT] == []
