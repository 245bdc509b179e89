"""The reader in `examples/`, which uses nothing of chronolet, reads what `chronolet log` prints."""

import json
import subprocess
import sys
from pathlib import Path

import redis

from tests.cli.support.log_owner import LogOwner

READER = Path(__file__).parents[2] / "examples" / "read_log.py"
MOST_LINES = 50


def read(owner: LogOwner) -> list[dict[str, object]]:
    words = [sys.executable, "-I", str(READER), "node-1", owner.url, str(owner.root / "archive")]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_example_reads_archive_and_stream_as_chronolet_does(owner: LogOwner) -> None:
    owner.accept("a")
    client = redis.Redis.from_url(owner.url)
    client.xadd("chronolet:{node-1}:log", {"of": "another program"})
    upto = owner.fill()
    owner.accept("b")
    assert [one["entity"] for one in read(owner)][-1] == "pod/default/b"
    owner.archive_and_trim(upto)
    client.xadd("chronolet:{node-1}:log", {"of": "another program"})
    found = read(owner)
    shown = [json.loads(line) for line in owner.run("log", "-o", "json").output.splitlines()]
    expected = [one for one in shown if one["type"]]
    names = ("position", "type", "entity", "subject", "actor", "cause")
    assert [[one[name] for name in names] for one in found] == [[one[name] for name in names] for one in expected]
    assert len(shown) == len(expected) + 2
    pods = [one["data"]["pod"] for one in found if str(one["entity"]).startswith("pod/default/")]  # type: ignore[index]
    assert pods == ["default/a", "default/b"]


def test_the_example_is_short() -> None:
    assert len(READER.read_text().splitlines()) <= MOST_LINES
