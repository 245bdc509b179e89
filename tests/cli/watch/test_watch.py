"""`get pods --watch`, as a separate process on a real Redis, prints the table, then each change, until interrupted."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from chronolet.pod.actor import kind
from chronolet_schemas import pod
from chronolet_schemas.keys import shard_for
from tests.cli.support.log_owner import LogOwner
from tests.support.scratch import HANG_SECONDS

PODS = kind().shards


def end(owner: LogOwner, name: str) -> None:
    key = f"default/{name}"
    ended = owner.record(f"pod/{key}", pod.PodEnded(pod=key, uid=f"uid-{name}"))
    owner.write(shard_for("pod", PODS, key), ended)


@contextmanager
def watching(owner: LogOwner, *arguments: str) -> Iterator[Iterator[str]]:
    """Run `get pods` with these arguments in a separate process. Yield its output lines, and interrupt it after the
    block; it must then exit without further output.
    """
    process = subprocess.Popen(
        owner.command("get", "pods", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        assert process.stdout is not None
        yield iter(process.stdout.readline, "")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert (process.returncode, out, err.strip()) == (130, "", "")  # click ends the line with the ^C
    finally:
        process.kill()
        process.wait()


def test_the_table_is_followed_by_a_line_for_each_change(owner: LogOwner) -> None:
    owner.accept("a")
    with watching(owner, "-w") as lines:
        assert next(lines).split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert next(lines).split()[:4] == ["a", "0/1", "ContainerCreating", "0"]
        owner.accept("b")
        assert next(lines).split()[:4] == ["b", "0/1", "ContainerCreating", "0"]
        owner.fill()  # entries about no pod
        end(owner, "a")
        assert next(lines).split()[:4] == ["a", "0/1", "ContainerCreating", "0"]


@pytest.mark.parametrize(
    ("form", "first", "second"),
    [
        ("name", ["pod/a"], ["pod/b"]),
        (
            "wide",
            ["NAME READY STATUS RESTARTS AGE IP NODE", "a 0/1 ContainerCreating 0"],
            ["b 0/1 ContainerCreating 0"],
        ),
        ("json", ["{"], ["{"]),
        ('jsonpath={.metadata.name}{"\\n"}', ["a"], ["b"]),
    ],
)
def test_changes_are_printed_in_every_output_format(
    owner: LogOwner, form: str, first: list[str], second: list[str]
) -> None:
    owner.accept("a")

    def expect(lines: Iterator[str], begins: list[str]) -> None:
        for begin in begins:
            assert " ".join(next(lines).split()).startswith(begin)
        while form == "json" and next(lines) != "}\n":
            pass

    with watching(owner, "--watch", "-o", form) as lines:
        expect(lines, first)
        owner.accept("b")
        expect(lines, second)


def test_each_pod_is_a_yaml_document(owner: LogOwner) -> None:
    owner.accept("a")
    with watching(owner, "-w", "-o", "yaml") as lines:
        assert next(lines) == "apiVersion: v1\n"
        owner.accept("b")
        read = ["apiVersion: v1\n"]
        while (line := next(lines)) != "---\n":
            read.append(line)
        assert yaml.safe_load("".join(read))["metadata"]["name"] == "a"
        read = []
        while not (line := next(lines)).startswith("status:"):
            read.append(line)
        assert yaml.safe_load("".join(read))["metadata"]["name"] == "b"
        # Skip the remaining lines about b.
        while not next(lines).startswith("  startTime:"):
            pass


def test_a_watch_of_named_pods_ignores_others(owner: LogOwner) -> None:
    owner.accept("a")
    with watching(owner, "a", "-w", "--no-headers") as lines:
        assert next(lines).split()[0] == "a"
        owner.accept("b")
        end(owner, "a")
        assert next(lines).split()[0] == "a"
    refused = owner.run("get", "pods", "none", "-w")
    assert (refused.status, refused.output) == (1, "")
    assert refused.errors == 'Error from server (NotFound): pods "none" not found\n'


def test_a_watch_from_a_past_moment_replays_the_changes_and_goes_on(owner: LogOwner) -> None:
    owner.accept("early")
    first = owner.accept("a")
    upto = owner.fill()
    owner.accept("b")
    owner.archive_and_trim(upto)
    with watching(owner, "-w", "-o", "name", "--from", f"#{first.n}") as lines:
        assert [next(lines), next(lines), next(lines)] == ["pod/a\n", "pod/early\n", "pod/b\n"]
        owner.accept("c")
        assert next(lines) == "pod/c\n"
