"""Rows of two agents use the samples of all rounds, and a command's text is not changed except for its placeholders."""

import math
from pathlib import Path
from typing import Any

from tests.bench.other_agents import named, rows
from tests.bench.other_agents.other import Other
from tests.support.docker.engine import PrivateDocker


def alone(*seconds: float) -> dict[str, Any]:
    return {"a_single_start": {"all": list(seconds)}, "f_single_remove_all_stopped": {"n": 0}}


def test_a_row_is_a_percentile_of_all_turns() -> None:
    start, stop = rows.of("a", rows.FULL["a"])
    figure = rows.compared(start, [alone(1, 1, 1), alone(2, 2, 2, 2)], [alone(4), alone(4)], "other")
    assert (figure.ours, figure.reference, figure.ratio) == (2, 4, 0.5)
    assert figure.met
    assert figure.note == "median of each turn: ours 1, 2; other's 4, 4"
    assert rows.compared(stop, [alone(1)], [alone(1)], "other").ours == math.inf


def test_a_row_that_never_happened_is_infinite() -> None:
    acting, disturbed = rows.of("e", rows.FULL["e"])
    back: dict[str, Any] = {"agent_start_to_container_start": 0.5, "disturbed": 0}
    never = {"agent_start_to_container_start": None, "disturbed": 0}
    ours, theirs = ({"e_agent_restart": {"reps": [one]}} for one in (never, back))
    assert rows.compared(acting, [ours], [theirs], "other").ours == math.inf
    assert rows.compared(disturbed, [ours], [theirs], "other").reference is None


def test_every_part_has_rows_for_all_its_measurements() -> None:
    names = [row.name for name, part in rows.FULL.items() for row in rows.of(name, part)]
    assert len(names) == len(set(names)) == 2 + 2 + 4 + 3 * 4 + 2 + 4 * 2
    assert "batch of 60, last start" in names
    assert "d. resident memory, 30 pods, http" in names


def test_a_batch_is_found_by_its_size() -> None:
    one = {"n": 30, "first": 1, "median": 2, "last": 3, "remove": {"all_stopped": 4}}
    found = {"a_batch": [{**one, "n": 10}, {**one, "first": 5}]}
    firsts = [row.samples(found) for row in rows.of("batch", rows.FULL["batch"]) if row.name.startswith("batch of 30")]
    assert firsts == [[5], [2], [3], [4]]


def test_several_others_are_numbered() -> None:
    assert named(["one"]) == {"other": "one"}
    assert named(["one", "two"]) == {"other 1": "one", "other 2": "two"}


def test_a_command_that_writes_no_pids_is_run_in_the_background(tmp_path: Path) -> None:
    docker = PrivateDocker(tmp_path)
    first = Other(tmp_path / "first", docker, "agent --dir {manifests} ${HOME}").start_command
    assert f"setsid agent --dir {tmp_path}/first/manifests ${{HOME}} >>" in first
    assert f"echo $! >{tmp_path}/first/pid" in first
    second = Other(tmp_path / "second", docker, "start {pidfile} {docker}").start_command
    assert second.endswith(f"; start {tmp_path}/second/pid unix://{tmp_path}/sock'")
