"""The servers that tests start behave as promised: a fixture that only seemed to lose data would prove nothing."""

import threading
import time
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.ports.runtime.runtime import Refusal, SandboxSpec
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.docker.proxy import DockerProxy, docker_proxy
from tests.support.redis.server import PrivateRedis, RedisOptions, private_redis
from tests.support.scratch import HANG_SECONDS, wait_until


def test_a_container_outlives_dockerd(docker_engine: PrivateDocker) -> None:
    api = docker_engine.api()
    config = api.create_host_config(port_bindings={80: 8080})
    command = ["/bin/sh", "-c", "mkdir /w; echo hello > /w/index.html; exec httpd -f -p 80 -h /w"]
    container = api.create_container(BUSYBOX.reference, command, ports=[80], host_config=config)["Id"]
    api.start(container)
    pid = api.inspect_container(container)["State"]["Pid"]
    try:
        wait_until(lambda: _body(docker_engine) == b"hello\n", "the container's response on the host port")
        docker_engine.kill9()
        docker_engine.start()
        state = api.inspect_container(container)["State"]
        assert (state["Running"], state["Pid"]) == (True, pid)
        wait_until(lambda: _body(docker_engine) == b"hello\n", "the response after the restart of dockerd")
    finally:
        docker_engine.remove_containers()


def _body(engine: PrivateDocker) -> bytes:
    try:
        return engine.namespace.http(8080, timeout=HANG_SECONDS).body
    except ConnectionError:
        return b""


@pytest.fixture
def proxied(docker_engine: PrivateDocker) -> Iterator[tuple[DockerRuntime, DockerProxy]]:
    """A runtime that uses the engine through a proxy."""
    with docker_proxy(docker_engine.host) as proxy:
        runtime = DockerRuntime(proxy.host, timeout_seconds=HANG_SECONDS)
        yield runtime, proxy
        runtime.close()
    docker_engine.remove_containers()


def _pause(runtime: DockerRuntime, name: str) -> str:
    spec = SandboxSpec(name=name, labels={"proxied": "yes"}, image=PAUSE.reference, hostname="x")
    return runtime.create_sandbox(spec)


def test_a_proxy_forwards_calls_without_a_fault(proxied: tuple[DockerRuntime, DockerProxy]) -> None:
    runtime, proxy = proxied
    made = _pause(runtime, "handed-on")
    runtime.start(made)
    exec_id = runtime.create_exec(made, ["/none"])
    assert exec_id
    found = runtime.inspect(made, timeout_seconds=HANG_SECONDS)
    assert found is not None
    assert found.state == "running"
    assert [one.id for one in runtime.list({"proxied": "yes"})] == [made]
    assert any(call.startswith(f"GET /v1.41/containers/{made}/json") for call in proxy.calls)


def test_a_proxy_hangs_refuses_and_loses_single_calls(proxied: tuple[DockerRuntime, DockerProxy]) -> None:
    runtime, proxy = proxied
    made, other = _pause(runtime, "hangs"), _pause(runtime, "other")
    stuck = proxy.hang(f"containers/{made}/json")
    with pytest.raises(Refusal) as late:
        runtime.inspect(made, timeout_seconds=0.3)
    assert late.value.kind == "timeout"
    assert runtime.inspect(other, timeout_seconds=HANG_SECONDS) is not None
    wait_until(lambda: not proxy.under_way(f"{made}/json"), "the end of a call whose client left")
    stuck.lift()
    assert runtime.inspect(made, timeout_seconds=HANG_SECONDS) is not None
    assert len(stuck.met) == 1
    refused = proxy.refuse("containers/json", message="disk I/O error")
    with pytest.raises(Refusal, match="disk I/O error"):
        runtime.list({})
    refused.lift()
    lost = proxy.swallow("/start")
    with pytest.raises(Refusal):
        runtime.start(made)
    lost.lift()
    started = runtime.inspect(made, timeout_seconds=HANG_SECONDS)
    assert started is not None
    assert started.state == "running", "the call was not made"
    dropped = proxy.drop("/kill")
    with pytest.raises(Refusal):
        runtime.kill(made)
    dropped.lift()
    assert [one.state for one in runtime.list({}) if one.id == made] == ["running"]
    late_start = proxy.delay(f"{other}/start", 0.3)
    began = time.monotonic()
    runtime.start(other)
    assert time.monotonic() - began > 0.3  # a lower limit: a slow machine does not fail it
    late_start.lift()


def test_a_proxy_mutes_and_cuts_a_stream(proxied: tuple[DockerRuntime, DockerProxy]) -> None:
    runtime, proxy = proxied
    noticed: list[str] = []
    ended = threading.Event()
    # Dockerd begins its response before it subscribes to events; `since` makes it send the events in between as well.
    began = int(time.time() * 1000)

    def follow() -> None:
        with pytest.raises(Refusal):
            noticed.extend(one.action for one in runtime.follow({"proxied": "yes"}, began, lambda _: None))
        ended.set()

    reader = threading.Thread(target=follow)
    reader.start()
    wait_until(lambda: proxy.under_way("/events") == 1, "the stream")
    made = _pause(runtime, "muted")
    wait_until(lambda: noticed == ["create"], "the event")
    muted = proxy.mute()
    runtime.start(made)
    wait_until(lambda: bool(muted.met), "an event that is lost")
    muted.lift()
    runtime.kill(made)
    wait_until(lambda: noticed == ["create", "kill", "die"], "the events after the lost one")
    assert proxy.cut() == 1
    assert ended.wait(HANG_SECONDS)
    reader.join()


def test_the_pause_image_ends_on_term(docker_engine: PrivateDocker) -> None:
    api = docker_engine.api()
    container = api.create_container(PAUSE.reference)["Id"]
    api.start(container)
    try:
        wait_until(lambda: len(api.top(container)["Processes"]) == 2, "shell and sleep")
        api.stop(container, timeout=int(HANG_SECONDS))
        assert api.inspect_container(container)["State"]["ExitCode"] == 0
    finally:
        docker_engine.remove_containers()


def test_always_keeps_every_acknowledged_write(redis_server: PrivateRedis) -> None:
    client = redis_server.client()
    for number in range(500):
        client.set("n", number)
    redis_server.kill9()
    redis_server.start()
    assert redis_server.client().get("n") == b"499"


def test_everysec_on_a_slow_disk_loses_an_acknowledged_tail() -> None:
    # If two seconds pass before the kill, the server stops waiting for its disk and logs that. Such an attempt proves
    # nothing and is repeated.
    wait_until(_loses_an_acknowledged_tail, "a server that is killed in time", 60)


def _loses_an_acknowledged_tail() -> bool:
    """Return whether the server was killed while it was still waiting for its disk; then the tail must be lost."""
    with private_redis(appendfsync="everysec", slow_fsync=True) as server:
        client = server.client()
        server.slow_down(3_600_000)
        assert client.set("early", 1)
        wait_until((server.folder / "busy").exists, "the beginning of an fsync, which does not end")
        assert client.set("late", 1)
        server.kill9()
        if "fsync is taking too long" in server.log.read_text():
            return False
        server.slow_down(0)
        server.start()
        assert (server.client().get("early"), server.client().get("late")) == (b"1", None)
        return True


def test_always_on_a_full_disk_ends_the_server_and_keeps_what_it_acknowledged() -> None:
    with private_redis(disk=4 << 20) as server:
        client = server.client()
        client.set("early", 1)
        filler = server.fill_disk()
        with pytest.raises(redis.ConnectionError):
            _write_until_refused(client)
        assert server.wait_for_end() == 1
        filler.unlink()
        server.start()
        assert server.client().get("early") == b"1"
        assert server.client().set("late", 1)


def test_everysec_on_a_full_disk_refuses_writes_until_there_is_room() -> None:
    with private_redis(appendfsync="everysec", disk=4 << 20) as server:
        client = server.client()
        filler = server.fill_disk()
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            _write_until_refused(client)
        filler.unlink()
        wait_until(lambda: _accepts_writes(client), "a write that is accepted")


def _write_until_refused(client: redis.Redis) -> None:
    wait_until(lambda: not client.set("k", "x" * 4096), "a write that is refused")


def _accepts_writes(client: redis.Redis) -> bool:
    try:
        return bool(client.set("after", 1))
    except redis.ResponseError:
        return False


def test_password_and_port() -> None:
    with private_redis(RedisOptions(requirepass="secret")) as server:
        assert server.client().ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(unix_socket_path=str(server.socket), retry=Retry(NoBackoff(), 0)).ping()


def test_a_redis_whose_clock_is_stepped() -> None:
    with private_redis(clock=True) as server:
        client = server.client()
        before = client.time()[0]
        server.step_clock(18_000)
        ahead = client.time()[0]
        server.step_clock(-18_000)
        behind = client.time()[0]
        assert ahead - before >= 18_000
        assert before - behind > 10_000
