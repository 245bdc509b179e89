"""Pods continue from snapshots of releases that did not create containers ahead of their start."""

from __future__ import annotations

import pytest

from chronolet.kernel.step.snapshots import decode_states
from chronolet.pod import signals, wanted
from chronolet.pod.state import State
from tests.deciders.pod.life import T0, Life
from tests.golden.write import FOLDER

SNAPSHOT = FOLDER.parent / "states" / "pod-before-creations-ahead.msgpack"


@pytest.fixture
def old() -> dict[str, Life]:
    lives = {}
    for name, image in decode_states(State, SNAPSHOT.read_bytes()).items():
        lives[name] = Life()
        lives[name].state = image.state
        lives[name].at = T0 + 60_000
    return lives


def test_all_stored_states_can_be_decoded(old: dict[str, Life]) -> None:
    assert sorted(old) == ["failed", "running", "starting", "starting-container"]
    assert all(one.ahead is None for life in old.values() for one in life.state.containers)


def test_running_containers_are_not_touched(old: dict[str, Life]) -> None:
    assert old["running"].effects == {}
    assert old["running"].dies().kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]


def test_a_starting_sandbox_continues(old: dict[str, Life]) -> None:
    life = old["starting"]
    assert isinstance(life.effects["sandbox"], wanted.StartSandbox)
    life.answer("sandbox", signals.SandboxMade, id="sandbox-0").image_there()
    assert life.kinds == ["ImageReady", "ContainerCreateRequested"]
    life.answer("create/app", signals.ContainerMade, id="app-ahead")
    assert life.sandbox_up().up().kinds == ["ContainerStarted"]


def test_a_starting_container_continues(old: dict[str, Life]) -> None:
    life = old["starting-container"]
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert start.made_id == ""
    assert life.up().kinds == ["ContainerStarted"]


def test_a_failed_sandbox_is_retried(old: dict[str, Life]) -> None:
    assert old["failed"].wake().kinds == ["SandboxStartRequested"]
    assert old["failed"].sandbox_up().start().kinds == ["ContainerStarted"]
