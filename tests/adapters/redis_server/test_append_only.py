"""A kill in the middle of a write: no part of that write is ever loaded, not even after later restarts."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.adapters.redis_server.append_only import MANIFEST, RepairError, cut_torn_end
from chronolet.adapters.redis_server.server import OwnServer, ServerFailed
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas.envelope import START
from tests.kernel.storage.node import SHARD, begin, connect, fitting, numbers
from tests.support import scratch


@pytest.fixture
def server() -> Iterator[OwnServer]:
    """Yield a server with a new state folder, which is removed at the end."""
    folder = scratch.create("state")
    server = OwnServer(folder)
    server.ensure()
    yield server
    scratch.kill(scratch.pids_naming(str(folder)))
    shutil.rmtree(folder)


def file_of(server: OwnServer) -> Path:
    (found,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    return found


def killed(server: OwnServer, size: int | None = None) -> None:
    """Kill the server. If `size` is given, truncate its file, as if only that much had been written."""
    scratch.kill([pid for pid in [server.pid()] if pid])
    scratch.wait_until(lambda: server.pid() is None, "the server's end")
    if size is not None:
        os.truncate(file_of(server), size)


def step(store: RedisStore, token: str, name: str) -> None:
    store.step(fitting(store, token, 2, step_id=name))


def begun(server: OwnServer) -> tuple[RedisStore, str, list[int]]:
    """Make three steps of two entries each; return the store, the token, and the file's size before the first step and
    after each step.
    """
    store = connect(server.url)
    token = begin(store)
    sizes = [file_of(server).stat().st_size]
    for name in ("one", "two", "three"):
        step(store, token, name)
        sizes.append(file_of(server).stat().st_size)
    return store, token, sizes


def test_a_cut_file_is_truncated_to_its_last_whole_transaction(server: OwnServer, tmp_path: Path) -> None:
    """The file's sizes after each acknowledged step show which part of it is whole."""
    store, _, sizes = begun(server)
    store.close()
    folder = server.folder / "appendonlydir"
    name, content = file_of(server).name, file_of(server).read_bytes()
    (tmp_path / MANIFEST).write_text((folder / MANIFEST).read_text())
    before, after = sizes[-2:]
    for size in range(before, after):
        (tmp_path / name).write_bytes(content[:size])
        assert cut_torn_end(tmp_path) == size - before, f"cut at {size}"
        assert (tmp_path / name).read_bytes() == content[:before]
    (tmp_path / name).write_bytes(content)
    assert cut_torn_end(tmp_path) == 0
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_half_of_a_step_does_not_reappear_after_a_later_restart(server: OwnServer, share: float) -> None:
    """With Redis's own repair (aof-load-truncated) it does reappear: 7.0.15 puts the entries of the torn step before
    the next step.
    """
    store, token, sizes = begun(server)
    killed(server, sizes[2] + int((sizes[3] - sizes[2]) * share))
    assert server.ensure() == "started"
    assert numbers(store) == [1, 2, 3, 4, 5]
    step(store, token, "three again")
    live = list(store.scan(START))
    killed(server)
    assert server.ensure() == "started"
    assert list(store.scan(START)) == live
    assert numbers(store) == [1, 2, 3, 4, 5, 6, 7]
    assert store.heads([SHARD])[SHARD].version == 3
    store.close()


def test_damage_other_than_a_torn_end_is_an_error(server: OwnServer) -> None:
    store, _, sizes = begun(server)
    store.close()
    killed(server)
    folder, content = server.folder / "appendonlydir", bytearray(file_of(server).read_bytes())
    content[sizes[1] + 1 : sizes[1] + 3] = b"xx"
    file_of(server).write_bytes(content)
    with pytest.raises(RepairError, match=r"incr.aof: damaged after command \d+: "):
        cut_torn_end(folder)
    file_of(server).write_bytes(b"+OK\r\n")
    with pytest.raises(RepairError, match=r"command 1 is b'OK', expected a list of words"):
        cut_torn_end(folder)
    for manifest in ("file appendonly.aof.1.base.rdb seq 1 type b\n", "file ../1.incr.aof seq 1 type i\n"):
        (folder / MANIFEST).write_text(manifest)
        with pytest.raises(RepairError, match="names no file of type i"):
            cut_torn_end(folder)


def test_a_file_that_cannot_be_repaired_is_an_error_and_not_changed(server: OwnServer) -> None:
    """The end is incomplete, and the data before it was not written by Redis: only a person may repair this."""
    store, _, sizes = begun(server)
    store.close()
    killed(server, sizes[3] - 3)
    content = file_of(server).read_bytes()
    file_of(server).write_bytes(b"#TS:1795641158\r\n" + content)
    with pytest.raises(ServerFailed, match=r"Unexpected end of file.*redis-check-aof --fix"):
        server.ensure()
    assert file_of(server).read_bytes() == b"#TS:1795641158\r\n" + content
