"""The agent's own redis-server and its disk reserve, with real servers, real kills and a full disk."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronolet.adapters.redis_server import identity
from chronolet.adapters.redis_server.disk_reserve import DiskReserve
from chronolet.adapters.redis_server.server import OwnServer, ServerFailed
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Committed, StoreUnreachable
from tests.kernel.storage.node import SHARD, begin, connect, fitting, numbers, unchecked
from tests.support import scratch
from tests.support.patience import PATIENT
from tests.support.scratch import HANG_SECONDS


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a state folder whose path is short enough for sockets; its servers are killed after the test."""
    made = scratch.create("state")
    yield made
    scratch.kill(scratch.pids_naming(str(made)))
    subprocess.run(["umount", "--quiet", "--lazy", made / "redis"], check=False)
    subprocess.run(["rm", "-rf", made], check=True)


def killed(server: OwnServer) -> int:
    """Kill the server, as in a crash; return its process id."""
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    scratch.wait_until(lambda: server.pid() is None, "the server's end")
    return pid


def test_a_server_is_started_adopted_and_stopped(folder: Path) -> None:
    server = OwnServer(folder)
    assert server.pid() is None
    assert server.ensure() == "started"
    pid = server.pid()
    store = connect(server.url, strict=True)
    assert isinstance(store.step(fitting(store, begin(store))), Committed)
    assert (server.folder.stat().st_mode & 0o777, server.socket.stat().st_mode & 0o777) == (0o700, 0o700)
    assert server.ensure() == "adopted"
    assert server.pid() == pid
    assert pid is not None
    server.stop()
    assert (server.pid(), scratch.start_time(pid)) == (None, None)
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        store.last()
    server.stop()
    assert server.ensure() == "started"
    assert numbers(store) == [1, 2]
    store.close()


def filled(store: RedisStore, token: str) -> str:
    """Commit until the server is full; return the error text, or an empty text if it is not full after 1,000 steps."""
    try:
        for turn in range(1000):
            store.step(fitting(store, token, 200, step_id=f"{turn}"))
    except StoreUnreachable as full:
        return str(full)
    return ""


def test_a_full_server_keeps_its_data_and_continues_once_its_limit_is_raised(folder: Path) -> None:
    server = OwnServer(folder, most_bytes=4 << 20)
    server.ensure()
    store = connect(server.url, strict=True)
    token = begin(store)
    assert "is full: raise its maxmemory" in filled(store, token)
    held = numbers(store)
    assert len(held) > 200
    killed(server)
    assert server.ensure() == "started"
    assert numbers(store) == held
    assert "is full: raise its maxmemory" in filled(store, token)
    store._queries.call("CONFIG", "SET", "maxmemory", "64mb")
    assert isinstance(store.step(fitting(store, token)), Committed)
    store.close()


def test_its_memory_limit_is_a_quarter_of_the_machines_memory(folder: Path) -> None:
    server = OwnServer(folder)
    server.ensure()
    channel = Channel(Address(server.url), HANG_SECONDS)
    (bound,) = channel.call("CONFIG", "GET", "maxmemory")[1:]
    channel.disconnect()
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert int(bound) == max(machine // 4, 64 << 20)


def test_its_settings_keep_every_acknowledged_write(folder: Path) -> None:
    server = OwnServer(folder)
    server.ensure()
    store = unchecked(server.url)
    found = store._queries.call("CONFIG", "GET", "append*", "save", "port", "maxmemory-policy", "aof-load-truncated")
    settings = dict(zip(found[::2], found[1::2], strict=True))
    wanted = {
        b"appendonly": b"yes",
        b"appendfsync": b"always",
        b"save": b"",
        b"port": b"0",
        b"maxmemory-policy": b"noeviction",
        b"aof-load-truncated": b"no",
    }
    assert settings.items() >= wanted.items()


def test_it_survives_the_agent_and_is_adopted(folder: Path) -> None:
    """Another process starts the server and is then killed, with its whole session."""
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from chronolet.adapters.redis_server.server import OwnServer;"
        "OwnServer(Path(sys.argv[1])).ensure(); os.killpg(0, signal.SIGKILL)"
    )
    agent = subprocess.run([sys.executable, "-c", code, folder], start_new_session=True, check=False)
    assert agent.returncode == -signal.SIGKILL
    server = OwnServer(folder)
    pid = server.pid()
    assert pid is not None
    assert server.ensure() == "adopted"
    assert server.pid() == pid
    server.stop()
    assert scratch.start_time(pid) is None


def test_it_is_restarted_after_a_crash(folder: Path) -> None:
    server = OwnServer(folder)
    server.ensure()
    store = connect(server.url)
    token = begin(store)
    store.step(fitting(store, token, 5))
    first = killed(server)
    assert server.ensure() == "started"
    assert server.pid() != first
    assert numbers(store) == list(range(1, 7))
    store.close()


def test_concurrent_agents_start_one_server(folder: Path) -> None:
    servers = [OwnServer(folder) for _ in range(5)]
    answers: list[str] = []
    threads = [threading.Thread(target=lambda s=s: answers.append(s.ensure())) for s in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["adopted"] * 4 + ["started"]
    assert len({server.pid() for server in servers}) == 1


def test_a_pid_file_that_names_another_process_is_ignored(folder: Path) -> None:
    server = OwnServer(folder)
    server.folder.mkdir(mode=0o700)
    (server.folder / "redis.pid").write_text(str(os.getpid()))
    (server.folder / "redis.sock").touch()
    assert server.pid() is None
    assert server.ensure() == "started"


@contextlib.contextmanager
def fake_server(folder: Path, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with the name redis-server and with the folder's socket in its title, as any user can do."""
    program = folder.with_name(f"{folder.name}-fake") / "redis-server"
    program.parent.mkdir()
    shutil.copy("/bin/sleep", program)
    title = f"redis-server unixsocket:{folder / 'redis' / 'redis.sock'}"
    command = ["/bin/bash", "-c", f"exec -a '{title}' {program} 600"]
    fake = subprocess.Popen(command, **how)
    try:
        scratch.wait_until(lambda: Path(f"/proc/{fake.pid}/comm").read_text() == "redis-server\n", "the fake server")
        yield fake
    finally:
        fake.kill()
        fake.wait()
        shutil.rmtree(program.parent)


@pytest.mark.parametrize("user", ["nobody", "root"])
def test_a_process_that_only_has_the_name_of_the_server_gets_no_signal(folder: Path, user: str) -> None:
    server = OwnServer(folder, patience_seconds=HANG_SECONDS)
    with fake_server(folder, user=user, cwd="/") as fake:
        server.folder.mkdir(mode=0o700)
        (server.folder / "redis.pid").write_text(str(fake.pid))
        assert server.pid() is None
        server.stop()
        assert server.ensure() == "started"
        assert server.pid() not in (None, fake.pid)
        adopter = OwnServer(folder)
        assert adopter.pid() == server.pid()
        adopter.stop()
        assert server.pid() is None
        assert fake.poll() is None, "it was sent a signal"


def test_a_socket_that_another_user_serves_is_refused(folder: Path) -> None:
    server = OwnServer(folder, patience_seconds=HANG_SECONDS)
    folder.chmod(0o755)
    server.folder.mkdir()
    server.folder.chmod(0o777)
    program = shutil.which("redis-server")
    assert program is not None
    command = [program, "--port", "0", "--unixsocket", str(server.socket), "--save", "", "--dir", "/"]
    other = subprocess.Popen(command, user="nobody", stdout=subprocess.DEVNULL, cwd="/")
    try:
        scratch.wait_until(lambda: identity.serving(server.socket) is not None, "the other user's server")
        with pytest.raises(
            ServerFailed, match=rf"served by process {other.pid} of user \d+, expected user 0: end that"
        ):
            server.ensure()
        assert server.pid() is None
        server.stop()
        assert other.poll() is None, "it was sent a signal"
    finally:
        other.kill()
        other.wait()


def test_a_damaged_file_is_reported(folder: Path) -> None:
    server = OwnServer(folder)
    server.ensure()
    store = connect(server.url)
    begin(store)
    store.close()
    killed(server)
    (log,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    content = bytearray(log.read_bytes())
    content[40:60] = b"garbage in the midst"
    log.write_bytes(content)
    with pytest.raises(ServerFailed, match=r"did not start.*Bad file format") as caught:
        server.ensure()
    assert not caught.value.disk_full
    assert "\n" not in str(caught.value)
    manifest = log.with_name("appendonly.aof.manifest")
    assert f"run `redis-check-aof --fix {manifest}`" in str(caught.value)
    fixed = subprocess.run(
        ["redis-check-aof", "--fix", manifest], input=b"y\n", capture_output=True, timeout=HANG_SECONDS, check=False
    )
    assert fixed.returncode == 0, fixed.stdout
    assert server.ensure() == "started"


def fill(store: RedisStore, token: str) -> int:
    """Commit until the server fails; return the number of acknowledged steps."""
    for turn in range(10_000):
        try:
            store.step(fitting(store, token, 100, step_id=str(turn)))
        except StoreUnreachable:
            return turn
    raise AssertionError("the disk did not become full")


def test_after_a_full_disk_the_released_reserve_lets_the_server_restart_with_all_steps(folder: Path) -> None:
    """Redis exits when its disk is full; once the reserve is released, it restarts with every acknowledged step."""
    disk = folder / "redis"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", disk], check=True)
    reserve = DiskReserve(disk / "ballast", 1 << 20)
    assert reserve.restore()
    server = OwnServer(folder)
    server.ensure()
    store = connect(server.url, timeouts=replace(PATIENT, resending_seconds=0.0))
    token = begin(store)
    acknowledged = fill(store, token)
    assert acknowledged > 10
    scratch.wait_until(lambda: server.pid() is None, "the server's end")
    assert server.disk_full()
    assert reserve.release() >= 1 << 20
    assert server.ensure() == "started"
    version = store.heads([SHARD])[SHARD].version
    assert version in (acknowledged, acknowledged + 1)
    assert numbers(store) == list(range(1, 100 * version + 2))
    assert isinstance(store.step(fitting(store, token, 1, step_id="after")), Committed)
    store.close()


def test_a_disk_without_any_room_is_reported(folder: Path) -> None:
    disk = folder / "redis"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", disk], check=True)
    (disk / "redis.log").touch()
    (disk / "lock").touch()
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    with pytest.raises(ServerFailed) as caught:
        OwnServer(folder).ensure()
    assert caught.value.healing
    assert caught.value.disk_full
    assert "its disk is full" in str(caught.value)


def test_a_path_too_long_for_a_socket_is_refused(folder: Path) -> None:
    with pytest.raises(StoreUnreachable, match="shorter --root-dir") as caught:
        OwnServer(folder / ("x" * 100)).ensure()
    assert not caught.value.healing
