"""Commands on a real redis-server: the log in Redis and in archive files is one history.

Commands run in the test's process, except for followers, interrupted commands and tests of imports.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import redis

from chronolet.kernel.storage.store import Snapshot
from chronolet_schemas.envelope import START
from chronolet_schemas.keys import shards_of
from tests.cli.support.log_owner import FILLING, POD, LogOwner
from tests.cli.support.written_node import Result
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS


def names(result: Result) -> list[str]:
    assert result.status == 0, result.errors
    return result.output.split()


def test_pods_are_the_same_before_and_after_trimming(owner: LogOwner) -> None:
    owner.accept("a")
    owner.accept("b")
    upto = owner.fill()
    owner.accept("c")
    expected = ["pod/a", "pod/b", "pod/c"]
    assert names(owner.run("get", "pods", "-o", "name")) == expected
    owner.archive_and_trim(upto)
    assert all("/a" not in entry.entity for entry in owner.store.read_log(START, 1_000))
    assert names(owner.run("get", "pods", "-o", "name")) == expected
    owner.accept("d")
    assert names(owner.run("get", "pods", "-o", "name")) == [*expected, "pod/d"]


def test_a_moment_of_the_past_may_be_in_the_archive_or_in_the_stream(owner: LogOwner) -> None:
    first = owner.accept("a")
    upto = owner.fill()
    second = owner.accept("b")
    owner.accept("c")
    owner.archive_and_trim(upto)
    for at in (f"#{first.n}", str(first), f"#{first.n + 5}", f"#{upto.n}"):
        assert names(owner.run("get", "pods", "-o", "name", "--at", at)) == ["pod/a"]
    assert names(owner.run("get", "pods", "-o", "name", "--at", f"#{second.n}")) == ["pod/a", "pod/b"]
    assert names(owner.run("get", "pods", "-o", "name", "--at", "-1ms"))[:2] == ["pod/a", "pod/b"]


def test_without_the_archive_a_moment_in_it_is_an_error(owner: LogOwner, tmp_path: Path) -> None:
    first = owner.accept("a")
    owner.archive_and_trim(owner.fill())
    owner.root = tmp_path / "another machine"
    result = owner.run("get", "pods", "--at", str(first))
    assert (result.output, result.status) == ("", 1)
    assert "were archived, and the archive files are not here" in result.errors


def test_the_log_continues_from_the_archive_into_the_stream(owner: LogOwner) -> None:
    owner.accept("a")
    upto = owner.fill()
    owner.accept("b")
    owner.archive_and_trim(upto)
    everything = FILLING + 3
    shown = [json.loads(line) for line in owner.run("log", "-o", "json").output.splitlines()]
    assert [line["position"].partition("-")[2] for line in shown] == [str(n) for n in range(1, everything + 1)]
    assert [line["data"]["pod"] for line in shown if "pod" in line["data"]] == ["default/a", "default/b"]
    for count in (2, 290, 302, 400):
        last = owner.run("log", "-n", str(count)).output.splitlines()
        wanted = range(max(1, everything - count + 1), everything + 1)
        assert [line.split()[1] for line in last] == [f"#{n}" for n in wanted]
    assert len(owner.run("log", "--since", "1h").output.splitlines()) == everything


def test_without_the_archive_pods_are_listed_and_the_log_reports_the_missing_part(
    owner: LogOwner, tmp_path: Path
) -> None:
    owner.accept("a")
    upto = owner.fill()
    owner.accept("b")
    owner.archive_and_trim(upto)
    owner.root = tmp_path / "another machine"
    assert names(owner.run("get", "pods", "-o", "name")) == ["pod/a", "pod/b"]
    assert owner.run("log", "--since", "1h").status == 1
    missing = owner.run("log")
    assert missing.status == 1
    assert missing.errors.startswith("error: the log's entries after 0-0 up to ")
    assert missing.errors.count("\n") == 1


def test_the_archive_replaces_a_snapshot_of_a_later_release(owner: LogOwner) -> None:
    owner.accept("a")
    owner.archive_and_trim(owner.fill())
    for shard in shards_of("pod", POD.shards):
        snapshot = owner.store.read_snapshots([shard]).get(shard)
        assert snapshot is not None
        newer = Snapshot(snapshot.position, POD.format + 1, b"\xc1")
        assert owner.store.snapshot(shard, owner.heads[shard].token, newer)
    assert names(owner.run("get", "pods", "-o", "name")) == ["pod/a"]


def test_a_damaged_archive_is_one_error_line(owner: LogOwner) -> None:
    owner.accept("a")
    owner.archive_and_trim(owner.fill())
    file = next((owner.root / "archive").rglob("*.archive"))
    file.write_bytes(file.read_bytes()[:-9])
    damaged = owner.run("log")
    assert damaged.status == 1
    assert damaged.errors.startswith(f"error: {file}: ")
    assert damaged.errors.count("\n") == 1


def test_a_follower_prints_new_entries_and_ends_quietly_on_interrupt(owner: LogOwner) -> None:
    follower = subprocess.Popen(
        owner.command("log", "-f", "--type", "pod.SpecAccepted"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert follower.stdout is not None
        owner.accept("first")
        assert "pod/default/first" in follower.stdout.readline()
        owner.accept("second")
        assert "pod/default/second" in follower.stdout.readline()
        follower.send_signal(2)
        out, err = follower.communicate(timeout=HANG_SECONDS)
    finally:
        follower.kill()
        follower.wait()
    assert (follower.returncode, out, err.strip()) == (130, "", "")


def test_the_end_of_the_server_ends_a_follower_with_one_error_line(owner: LogOwner, redis_server: PrivateRedis) -> None:
    follower = subprocess.Popen(
        owner.command("log", "-f"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert follower.stdout is not None
        assert "kernel.LogStarted" in follower.stdout.readline()
        redis_server.kill9()
        _, err = follower.communicate(timeout=HANG_SECONDS)
    finally:
        follower.kill()
        follower.wait()
    assert follower.returncode == 1
    assert err.startswith("error: Redis at ")
    assert err.count("\n") == 1


def test_commands_that_read_write_nothing(owner: LogOwner) -> None:
    owner.accept("a")
    client = owner_client(owner)
    before = {key: client.dump(key) for key in sorted(client.keys())}
    for words in (["get", "pods"], ["get", "actors"], ["describe", "pods"], ["log"], ["get", "containers"]):
        assert owner.run(*words).status == 0
    assert {key: client.dump(key) for key in sorted(client.keys())} == before


def owner_client(owner: LogOwner) -> redis.Redis:
    return redis.Redis.from_url(owner.url)


def test_a_read_loads_neither_docker_nor_grpc_nor_the_agent(owner: LogOwner) -> None:
    owner.accept("a")
    words = owner.command("get", "pods")[3:]
    code = (
        "import sys; from chronolet.cli.main import status_of; from chronolet.cli.services import Services; "
        f"assert status_of({words!r}, Services()) == 0; "
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'docker', 'requests', 'grpc', 'pykka', 'prometheus_client', 'yaml', 'rich'}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
