"""`replay`, `timeline` and `history` on a real node: what they print is what other commands print, or printed then."""

import itertools
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet_schemas import devices, pod
from tests.e2e.devices.device_node import plugin, requesting, wait_for_list
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.machine import tmux
from tests.support.machine.tmux import Terminal, private_terminal

GPU = "shared.test/gpu"


@pytest.fixture(scope="module")
def used(node: Node) -> Node:
    """The node after these things have happened: pod first, then pod second held the only device; pod loop restarted
    three times, and the agent once.
    """
    with plugin(node, GPU, "--devices", "1"):
        first = node.write("first.yaml", a_pod("first", requesting(GPU, 1)))
        node.write("loop.yaml", a_pod("loop", shell("app", "exit 3")))
        node.wait_until_running("first")
        node.journal.wait_for_event(pod.RestartScheduled, pod="default/loop", container="app", attempt=1)
        node.kill9()
        node.start()
        node.wait_until_running("first")
        wait_for_list(node, GPU, 2)  # of the plugin, which has registered again
        first.unlink()
        node.wait_until_gone("first")
        node.journal.wait_for_event(devices.DevicesFreed, pod="default/first")
        node.write("second.yaml", a_pod("second", requesting(GPU, 1)))
        node.wait_until_running("second")
        node.journal.wait_for_event(pod.ContainerExited, pod="default/loop", container="app", attempt=2)
    return node


@pytest.fixture
def terminal(node: Node, tmp_path: Path) -> Iterator[Terminal]:
    """A shell that finds `chronolet` on PATH."""
    script = tmp_path / "bin" / "chronolet"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m chronolet.cli "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environ = {**node.environ, "PATH": f"{script.parent}:{node.environ['PATH']}", "HOME": str(tmp_path)}
    with private_terminal(environ) as window:
        yield window


def frames(node: Node, *words: str) -> list[Any]:
    result = node.chronolet("replay", "-o", "json", *words)
    assert (result.status, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def found(node: Node, *words: str) -> dict[str, Any]:
    result = node.chronolet(*words, "-o", "json")
    assert (result.status, result.err) == (0, "")
    data: dict[str, Any] = json.loads(result.out)
    return data


def test_steps_have_all_entries_and_change_what_diff_finds(used: Node) -> None:
    with used.paused_when("any moment", lambda: True):
        every = [json.loads(line) for line in used.chronolet("log", "-o", "json").out.splitlines()]
        steps = frames(used)
        state = used.chronolet("replay", "--at", f"#{len(every)}", "-o", "json").out
        now = used.chronolet("get", "pods,devices,images", "-A", "-o", "json").out
    assert [one for step in steps for one in step["events"]] == every
    items = [one for one in json.loads(state)["items"] if "restartCount" not in one]  # all but containers
    assert items.pop()["kind"] == "Node"
    assert items == json.loads(now)["items"]
    changing = [
        (before, after)
        for before, after in itertools.pairwise(steps)
        if {one["name"].partition("/")[0] for one in after["objects"]} & {"device", "image", "node"}
    ]
    assert len(changing) >= 5
    for before, after in changing[:: max(len(changing) // 10, 1)]:
        moments = ("--from", before["position"], "--to", after["position"])
        expected = json.loads(used.chronolet("diff", *moments, "-A", "-o", "json").out)["objects"]
        assert after["objects"] == expected, after


def test_the_replay_of_a_pod_has_each_restart(used: Node) -> None:
    with used.paused_when("any moment", lambda: True):
        steps = frames(used, "--only", "pod/loop")
        restarts = used.restarts("loop")
    counts = [
        field["after"]
        for step in steps
        for one in step["objects"]
        for field in one.get("fields", ())
        if field["path"] == "status.containerStatuses[app].restartCount"
    ]
    assert counts
    assert counts == list(range(1, counts[-1] + 1))
    assert [counts[-1]] == restarts


def test_follow_prints_what_happens_next(used: Node) -> None:
    with used.running_command("replay", "--follow", "--only", "pod/first", "--only", "pod/later") as process:
        assert process.stdout is not None
        assert b"pod/default/first" in next(process.stdout), "recorded steps come first"
        used.write("later.yaml", a_pod("later"))
        is_last = "pod/default/later pod.ContainerStarted"
        read = itertools.takewhile(lambda line: is_last not in line.decode(), process.stdout)
        lines = [line.decode() for line in read]
    assert any("pod/default/later pod.SpecAccepted" in line for line in lines)
    assert "  pod/later: added\n" in lines


def test_keys_step_through_the_log_in_a_terminal(used: Node, terminal: Terminal) -> None:
    last = len(used.chronolet("log").out.splitlines())
    terminal.type("chronolet replay --step --only pod/first")
    terminal.wait_for("n or Enter: next step")
    terminal.press("n")
    terminal.wait_for("manifests.PodApplied")
    terminal.press("n")
    terminal.wait_for("pod/first: added")
    terminal.press("b", "b")
    terminal.wait_for("no earlier step")
    terminal.press("j")
    terminal.wait_for("jump to")
    terminal.type("never")
    terminal.wait_for("jump: found 'never'")
    terminal.press("j")
    terminal.type(f"#{last}")
    terminal.wait_for("after entry #")
    terminal.press("n")
    terminal.wait_for("no later step")
    terminal.press("b", "b", "b")  # other actors note the end after it
    terminal.wait_for("pod/first: removed")
    terminal.press("q")
    terminal.ask("echo status=$?")
    terminal.wait_for_line("status=0")


def test_the_timeline_has_the_restarts_and_fits_the_terminal(used: Node, terminal: Terminal) -> None:
    with used.paused_when("any moment", lambda: True):
        rows = {one["pod"]: one for one in found(used, "timeline")["containers"]}
        restarts = used.restarts("loop")
    assert {"first", "second", "loop"} <= set(rows)
    assert [rows["loop"]["restarts"]] == restarts
    ends = [one for one in rows["loop"]["marks"] if one["what"] == "error"]
    assert {one["detail"] for one in ends} == {"3"}
    assert len(ends) >= 3
    assert rows["first"]["spans"][-1]["condition"] in ("ready", "completed", "failed")
    assert rows["first"]["spans"][-1]["to"] < rows["second"]["spans"][-1]["to"]
    plain = used.chronolet("timeline", "loop").out
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 80
    terminal.type("chronolet timeline loop")
    screen = terminal.wait_until(lambda text: "RESTARTS" in text and "ended with an error" in text, "the chart")
    [axis] = [line for line in screen.splitlines() if "RESTARTS" in line]
    assert len(axis) == tmux.COLUMNS


def test_a_device_was_handed_over(used: Node) -> None:
    first, second = found(used, "history", "devices", GPU)["tenures"]
    assert (first["pod"], second["pod"]) == ("first", "second")
    assert (second["before"]["uid"], second["before"]["until"]) == (first["uid"], first["until"])
    assert first["until"] <= second["from"]
    assert "until" not in second


def test_the_image_was_used_by_the_pods(used: Node) -> None:
    images = found(used, "history", "images")["images"]
    uses = {use["user"]: use for one in images for use in one["uses"]}
    assert {"default/first/app", "default/second/app", "default/loop/app"} <= set(uses)
    assert "until" in uses["default/first/app"]
    assert "until" not in uses["default/second/app"]


def test_the_node_shows_its_load_and_both_starts_of_the_agent(used: Node) -> None:
    with used.paused_when("any moment", lambda: True):
        history = found(used, "history", "node")
        entries = len(used.chronolet("log").out.splitlines())
    assert sum(one["entries"] for one in history["load"]) == entries
    assert sum(one["containerStarts"] for one in history["load"]) >= 5
    assert max(one["lagMilliseconds"] for one in history["load"]) > 0
    starts = [one for one in history["conditions"] if one["what"] == "agent follows the engine"]
    assert len(starts) == 2
