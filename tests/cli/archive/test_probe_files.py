"""`chronolet archive verify` and `repair` about files of probe outcomes, on a real redis-server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.services import Services
from chronolet.keeper.effects import KEEPER
from chronolet_schemas import codec, keeper, registry
from chronolet_schemas.envelope import Event, Record
from tests.cli.support.written_node import Result, run
from tests.integration.keeper.support import NODE, POD, Desk, desk
from tests.integration.keeper.test_probe_keeping import Stage
from tests.support.redis.server import PrivateRedis


@pytest.fixture
def stage(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Stage]:
    """A node with three files of outcomes, which the log has."""
    with desk(redis_server.url, tmp_path) as opened:
        made, after = Stage(opened), "0-0"
        for _ in range(3):
            upto = made.write(2)
            made.archive(after, upto)
            record(
                opened,
                keeper.ProbeArchiveRequested(after=after, upto=upto),
                keeper.ProbesArchived(file="f", after=after, upto=upto, outcomes=4, size_bytes=1, sha256=""),
            )
            after = upto
        yield made
        made.channel.disconnect()


def record(at_desk: Desk, *events: Event) -> None:
    """Append events of the keeper."""
    records = (
        Record(registry.type_of(type(one)), "keeper/node", "", "keeper#1", "", codec.encode(one)) for one in events
    )
    at_desk._step(KEEPER, tuple(records))


def paths(stage: Stage) -> list[Path]:
    return [Path(stage.files.storage.place(name)) for name in stage.names()]


def archive(stage: Stage, *arguments: str) -> Result:
    flags = ("--redis", stage.desk.url, "--root-dir", str(stage.desk.folder), "--hostname-override", NODE)
    return run(Services(), "archive", *arguments, *flags)


def verified(stage: Stage) -> tuple[int, dict[str, Any]]:
    result = archive(stage, "verify", "-o", "json")
    content: dict[str, Any] = json.loads(result.output)
    assert content["sound"] is content["probes"]["sound"] is (result.status == 0)
    return result.status, content["probes"]


def test_sound_files_are_listed(stage: Stage) -> None:
    shown = archive(stage, "verify")
    _, *rows, _, summary = shown.output.splitlines()
    assert [row.split()[0] for row in rows] == stage.names()
    assert [row.split()[3:] for row in rows] == [["4", "ok"]] * 3
    assert summary == f"{stage.files.storage.place()}: 3 files of probe outcomes, sound"
    assert verified(stage)[0] == 0
    assert archive(stage, "repair").output.endswith("nothing to repair\n")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_missing_file_is_found(stage: Stage, number: int) -> None:
    path = paths(stage)[number]
    path.unlink()
    status, found = verified(stage)
    assert (status, [f"{one['after']}..{one['last']}.probes" for one in found["missing"]]) == (1, [path.name])
    assert "2 files of probe outcomes, 0 damaged, 1 missing" in archive(stage, "verify").output


def test_deleted_files_are_not_missing(stage: Stage) -> None:
    first = stage.names()[0]
    upto = first.removesuffix(".probes").partition("..")[2]
    record(stage.desk, keeper.ProbeDeletionRequested(files=(first,), upto=upto))
    assert verified(stage)[0] == 0, "the deletion has not happened yet"
    paths(stage)[0].unlink()
    assert verified(stage)[0] == 0


def test_a_damaged_file_is_named_and_its_loss_can_be_accepted(stage: Stage) -> None:
    first, second, third = paths(stage)
    first.write_bytes(first.read_bytes()[:-5])
    second.unlink()
    status, found = verified(stage)
    assert (status, [one["problem"] for one in found["files"]]) == (1, ["truncated", ""])
    refused = archive(stage, "repair")
    assert (refused.status, first.exists()) == (1, True)
    assert f"{first.name}: cannot be repaired: Redis no longer has its outcomes" in refused.output
    assert f"missing file {second.name}: cannot be repaired" in refused.output
    accepted = archive(stage, "repair", "--accept-loss")
    assert (accepted.status, first.exists()) == (0, False)
    assert accepted.output.count("recorded as lost") == 2
    assert first.with_name(f"{first.name}.damaged").exists()
    status, found = verified(stage)
    assert (status, len(found["files"]), len(found["lost"])) == (0, 1, 2)
    assert archive(stage, "verify").output.count("lost, accepted") == 2
    assert third.exists()


def test_files_are_verified_although_the_log_is_damaged(stage: Stage) -> None:
    """The log does not tell how far outcomes were archived then."""
    stage.desk.archive_upto(stage.desk.write(10))
    stage.desk.keep_up(POD, KEEPER, snapshots=False)
    [name] = [path.name for path in stage.desk.files()]
    stage.channel.call("XTRIM", f"chronolet:{{{NODE}}}:log", "MAXLEN", 2)
    stage.channel.call(
        "HSET", f"chronolet:{{{NODE}}}:meta", "trimmed", name.removesuffix(".archive").partition("..")[2]
    )
    stage.desk.files()[0].unlink()
    paths(stage)[0].unlink()
    status, found = verified_probes(stage)
    assert (status, found["sound"], len(found["files"])) == (1, True, 2)


def verified_probes(stage: Stage) -> tuple[int, dict[str, Any]]:
    result = archive(stage, "verify", "-o", "json")
    content: dict[str, Any] = json.loads(result.output)
    return result.status, content["probes"]


def test_a_file_that_is_not_given_out_is_left_alone(stage: Stage) -> None:
    path = paths(stage)[0]
    path.unlink()
    path.symlink_to(path)
    status, found = verified(stage)
    assert status == 1
    assert "not returned by the storage" in found["files"][0]["problem"]
    repaired = archive(stage, "repair", "--accept-loss")
    assert (repaired.status, path.is_symlink()) == (1, True)
    assert f"{path.name}: left as it is: not returned by the storage" in repaired.output
