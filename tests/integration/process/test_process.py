"""One agent as seen from outside: its pages, its shutdown, its log, and its errors when it cannot run."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chronolet_schemas import codec, registry
from chronolet_schemas.keys import NODES, Keys, Shard
from chronolet_schemas.manifests import ApplyPods
from chronolet_schemas.pod import ContainerStarted
from chronolet_schemas.podspec import Container, Pod, PodSpec
from chronolet_schemas.podspec.meta import ObjectMeta
from tests.integration.process.support import MANIFESTS, NODE, PATIENT, Agent, Place, place
from tests.support.docker.engine import PrivateDocker
from tests.support.log_lines import most_repeated
from tests.support.machine.frozen import stopped
from tests.support.ports import free_port
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import HANG_SECONDS

ALL = "manifests,pod,pleg,keeper"


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as opened:
        yield opened


@pytest.fixture
def empty_engine(docker_engine: PrivateDocker) -> Iterator[PrivateDocker]:
    yield docker_engine
    docker_engine.remove_containers()


def checks(agent: Agent) -> dict[str, str]:
    """Return the failed checks of /readyz with their problems."""
    _, text = agent.get("/readyz?verbose")
    failed = (line.removeprefix("[-]").partition(" failed: ") for line in text.splitlines() if line.startswith("[-]"))
    return {name: wrong for name, _, wrong in failed}


def samples(agent: Agent) -> dict[str, float]:
    _, text = agent.get("/metrics")
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def manifest(name: str, *containers: str) -> Pod:
    shell = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
    each = tuple(Container(name=one, image="chronolet/busybox:1", command=tuple(shell)) for one in containers)
    return Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=each))


# -- pages ---------------------------------------------------------------------------------------------------------
def test_metrics_have_the_kubelets_names(here: Place, empty_engine: PrivateDocker) -> None:
    agent = here.start(
        docker=empty_engine.host,
        cgroup_root=empty_engine.cgroup_root("n"),
        actors=ALL,
        admission="prober",  # qos is not hosted, and no pod has a probe
        port=free_port(),
        pleg_relist_period="200ms",
        **PATIENT,
    )
    agent.wait_ready()
    assert agent.get("/healthz") == (200, "ok")
    began = time.time()
    before = samples(agent)
    assert before["kubelet_running_pods"] == before["kubelet_running_containers running"] == 0
    store = here.store()
    apply = ApplyPods(request="apply-1", pods=(manifest("one", "a", "b"), manifest("two", "a")))
    assert (
        store.send(MANIFESTS, registry.type_of(ApplyPods), "manifests/node", "apply-1", codec.encode(apply)) == "sent"
    )
    here.wait_until(lambda: len(here.events(store, ContainerStarted)) == 3, "three containers", 60)
    here.wait_until(lambda: samples(agent)["kubelet_running_containers running"] == 3, "a relist that sees them")
    # For a relist in progress, the interval since the previous one is already counted, but the duration is not.
    relists, intervals = (f"kubelet_pleg_relist_{name}_seconds_count" for name in ("duration", "interval"))
    found: list[dict[str, float]] = []

    def between_relists() -> bool:
        found.append(samples(agent))
        return found[-1][intervals] == found[-1][relists] - 1

    here.wait_until(between_relists, "figures of whole relists")
    now = found[-1]
    assert now["kubelet_running_pods"] == 2
    assert now["kubelet_started_pods_total"] == 2
    assert now["kubelet_started_containers_total container"] == 3
    assert now["kubelet_node_name n"] == 1
    assert now[relists] > before[relists] > 0
    assert began < now["kubelet_pleg_last_seen_seconds"] < time.time()
    assert now["kubelet_runtime_operations_total create_container"] == 3
    assert now["kubelet_runtime_operations_duration_seconds_count create_container"] == 3
    assert now["chronolet_lease_valid"] == 1
    assert now["chronolet_shards_owned"] == 7
    assert agent.end() == 0


def test_readyz_names_what_is_missing_and_healthz_stays_healthy(here: Place) -> None:
    agent = here.start(actors=ALL, port=free_port(), **PATIENT)
    agent.wait_for_line("own redis-server")
    here.wait_until(lambda: checks(agent) == {"pleg": "pleg has yet to be successful"}, "all but Docker")
    here.wait_until(lambda: agent.get("/readyz/redis") == (200, "ok"), "Redis, which may stand still for a moment")
    assert agent.get("/healthz") == (200, "ok")


def test_readyz_names_quarantined_shards(here: Place) -> None:
    """The other shards are hosted; only /readyz shows that these are not."""
    with private_redis() as server:
        broken, client = Keys(NODE).shard(Shard("keeper")), server.client()
        client.set(broken, "no hash")
        agent = here.start(redis=server.url, port=free_port())
        agent.wait_for_line("shard quarantined")
        here.wait_until(lambda: checks(agent).keys() == {"shards"}, "the hosting of the others")
        assert checks(agent)["shards"] == f"keeper is quarantined: a key has the wrong type: {broken} is a string"
        assert agent.get("/readyz")[0] == 500
        assert agent.get("/healthz") == (200, "ok")
        client.delete(broken)
        agent.wait_ready()


def test_readyz_reports_loss_and_return_of_redis(here: Place) -> None:
    with private_redis() as server:
        agent = here.start(redis=server.url, port=free_port())
        agent.wait_ready()
        server.pause()
        expected = {"redis": "did not answer in time", "lease": "not renewed in time"}
        here.wait_until(lambda: checks(agent) == expected, "a lapsed lease")
        assert agent.get("/healthz") == (200, "ok")
        server.resume()
        here.wait_until(lambda: checks(agent) == {}, "its return")


def test_a_process_on_standby_is_ready_and_reports_it(here: Place) -> None:
    # Both host one kind with one shard, so there is nothing to share.
    first = here.start(actors="manifests", port=free_port(), **PATIENT)
    first.wait_ready()
    second = here.start(actors="manifests", port=free_port(), **PATIENT)
    second.wait_for_line("own redis-server")
    second.wait_for_line("no free shard, standing by")
    second.wait_ready()
    assert "[+]phase ok: standing by" in second.get("/readyz?verbose")[1]
    first.end()
    here.wait_until(lambda: "[+]phase ok: running" in second.get("/readyz?verbose")[1], "the take-over")


def test_the_node_is_in_the_list_of_nodes(here: Place) -> None:
    began = time.time()
    agent = here.start(port=free_port())
    agent.wait_ready()
    store = here.store()
    here.wait_until(lambda: bool(store._queries.call("HEXISTS", NODES, NODE)), "the node's line")
    line = json.loads(store._queries.call("HGET", NODES, NODE))
    assert set(line) == {"seen", "version", "address"}
    assert line["address"] == f"127.0.0.1:{agent.port}"
    assert began < line["seen"] / 1000 < time.time()


# -- shutdown ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_shutdown(here: Place, number: signal.Signals) -> None:
    agent = here.start(actors=ALL, port=free_port(), **PATIENT)
    agent.wait_for_line("own redis-server")
    here.wait_until(lambda: set(checks(agent)) == {"pleg"}, "all but Docker")
    _ends_cleanly(here, agent, number)
    store = here.store()
    assert store.heads([MANIFESTS])[MANIFESTS].token == "", agent.log


def test_a_second_signal_ends_a_shutdown_that_hangs(here: Place) -> None:
    agent = here.start(actors=ALL, port=free_port(), **PATIENT)
    agent.wait_for_line("own redis-server")
    here.wait_until(lambda: set(checks(agent)) == {"pleg"}, "all but Docker")
    with stopped([here.redis_pid()]):
        agent.process.send_signal(signal.SIGTERM)
        agent.wait_for_line("stopping")
        assert agent.process.poll() is None
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(timeout=HANG_SECONDS) == 0
    agent.wait_for_line("stopped without a clean shutdown: a second signal came")


def test_a_name_that_another_process_of_the_machine_has_is_refused(here: Place) -> None:
    first = here.start(process_name="web-1", **PATIENT)
    first.wait_for_line("own redis-server")
    second = here.start(process_name="web-1", **PATIENT)
    assert second.process.wait(timeout=HANG_SECONDS) == 1
    second.wait_for_line("process name 'web-1' is taken: a running process of this machine holds")
    assert first.process.poll() is None


@pytest.mark.parametrize("line", ["starting", "own redis-server"])
def test_a_clean_shutdown_during_the_start(here: Place, line: str) -> None:
    here.start(actors=ALL, **PATIENT).wait_for_line("own redis-server")
    store = here.store()
    here.wait_until(lambda: len(store.alive()) == 1, "its lease")
    for _ in range(5):
        agent = here.start(actors=ALL, **PATIENT)
        agent.wait_for_line(line)
        _ends_cleanly(here, agent, signal.SIGTERM, others=1)


def _ends_cleanly(here: Place, agent: Agent, number: signal.Signals, others: int = 0) -> None:
    agent.process.send_signal(number)
    assert agent.process.wait(timeout=HANG_SECONDS) == 0, agent.log
    assert len(here.store().alive()) == others
    assert agent.lines[-1].split()[-1] == "stopped", agent.log
    assert "Traceback" not in agent.log
    assert len(list((here.root / "locks").iterdir())) == others


def killed(server: PrivateRedis) -> None:
    server.kill9()


def hanging(server: PrivateRedis) -> None:
    server.pause()


@pytest.mark.parametrize("lost", [killed, hanging])
def test_a_timely_shutdown_while_redis_is_unavailable(here: Place, lost: object) -> None:
    with private_redis() as server:
        agent = here.start(redis=server.url, actors=ALL, port=free_port())
        agent.wait_for_line("serving")
        here.wait_until(lambda: set(checks(agent)) == {"pleg"}, "all but Docker")
        assert callable(lost)
        lost(server)
        here.wait_until(lambda: "redis" in checks(agent), "the loss")
        assert agent.end() == 0, agent.log


def test_a_timely_shutdown_before_redis_was_ever_available(here: Place) -> None:
    agent = here.start(redis=f"unix://{here.disk}/nothing.sock")
    agent.wait_for_line("waiting for the server")
    assert agent.end() == 0, agent.log


# -- the log -------------------------------------------------------------------------------------------------------
def lines_of(agent: Agent, since: datetime, seconds: float) -> list[str]:
    """Return the lines of the log whose time is in this interval."""
    until = since + timedelta(seconds=seconds)
    return [line for line in agent.lines if since <= datetime.fromisoformat(line.split()[0]) < until]


def test_few_log_lines_while_redis_and_docker_are_unavailable(here: Place) -> None:
    with private_redis() as server:
        agent = here.start(redis=server.url, actors=ALL, port=free_port())
        here.wait_until(lambda: "serving" in agent.log and set(checks(agent)) == {"pleg"}, "all but Docker")
        killed_at = datetime.now(UTC)
        server.kill9()
        began = time.monotonic()
        here.wait_until(lambda: time.monotonic() - began > 8, "time to pass")
        away = lines_of(agent, killed_at, 8)
        assert 0 < most_repeated(away) <= 2, agent.log
        assert len(away) < 30, agent.log
        started_at = datetime.now(UTC)
        server.start()
        here.wait_until(lambda: set(checks(agent)) == {"pleg"}, "its return")
        assert most_repeated(lines_of(agent, started_at, 8)) <= 2, agent.log
        assert "Traceback" not in agent.log


# -- settings with which it cannot run -----------------------------------------------------------------------------
def test_a_port_in_use_is_reported_in_one_line(here: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        agent = here.start(port=port)
        assert agent.process.wait(timeout=HANG_SECONDS) == 1
    (line,) = [line for line in agent.lines if "[error" in line]
    assert f"--port {port}: cannot listen there: Address already in use; choose another port" in line
    assert "Traceback" not in agent.log
    # The agent leaves nothing behind: no server was started.
    assert here.redis_pid() == 0
    assert list((here.root / "locks").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 1 << 30}, "maxmemory-policy"),
        ({"requirepass": "secret"}, "password"),
    ],
)
def test_an_unusable_server_is_reported_in_one_line(here: Place, options: dict[str, object], finding: str) -> None:
    with private_redis(**options) as server:
        agent = here.start(redis=f"unix://{server.socket}")
        assert agent.process.wait(timeout=HANG_SECONDS) == 1
        (line,) = [line for line in agent.lines if "[error" in line]
        assert finding in line
        assert "Traceback" not in agent.log


def test_redis_is_the_only_child_of_the_process(here: Place) -> None:
    agent = here.start(port=free_port())
    agent.wait_ready()
    with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as file:  # noqa: PTH123 - /proc
        assert [int(pid) for pid in file.read().split()] == [here.redis_pid()]
    assert os.getsid(here.redis_pid()) == here.redis_pid()
