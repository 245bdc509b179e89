"""The container collector and the device lists of plugins, with the real kernel: a real log and real threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.pod_resources.server import GrpcPodResources
from chronolet.adapters.sockets import grpc_sockets
from chronolet.container_gc import actor as container_gc_actor
from chronolet.container_gc.effects import Collecting, Turns
from chronolet.container_gc.inventory import Inventory
from chronolet.devices import actor as devices_actor
from chronolet.devices import effects as devices_effects
from chronolet.devices.plugins.registration import BURST_REGISTRATIONS
from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import Kind
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.ports.devices.pod_resources import NodeResources
from chronolet.ports.pods.pod_logs import NoPodLogs
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerSpec, SandboxSpec
from chronolet_schemas import codec, container_gc, devices
from chronolet_schemas.envelope import START, Event
from chronolet_schemas.protos import deviceplugin_pb2 as api
from tests.support import scratch
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.redis.server import PrivateRedis, private_redis

PARALLEL, DEAD = 8, 80
E = TypeVar("E", bound=Event)


@pytest.fixture(scope="module")
def redis() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


class Log:
    """The events of one actor kind in the log."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def of(self, kind: type[E]) -> list[E]:
        entries = [one for one in self._store.read_log(START, 10_000) if one.type.startswith(f"{_module(kind)}.")]
        events = [codec.decode(one.type, one.data, Event) for one in entries]
        return [one for one in events if isinstance(one, kind)]

    def wait_for(self, kind: type[E], times: int = 1) -> list[E]:
        scratch.wait_until(lambda: len(self.of(kind)) >= times, f"{times} x {kind.__name__}", 60)
        return self.of(kind)


def _module(kind: type[Event]) -> str:
    return kind.__module__.rpartition(".")[2]


@contextmanager
def hosted(redis: PrivateRedis, kind: Kind[Any], locks: Path) -> Iterator[Log]:
    """Run the kernel with this actor kind only, and yield the kind's log."""
    store = RedisStore(redis.url, f"node-of-{kind.name}")
    shards = {kind.name: 1}
    # The lease must not expire if the machine stalls, because that would restart the calls.
    process = Process(
        Setup(node="node", store=store, kinds={kind.name: kind}, shards=shards, locks=locks, lease_milliseconds=600_000)
    )
    process.start()
    try:
        scratch.wait_until(lambda: process.phase == "running", "the kernel's process")
        yield Log(store)
    finally:
        process.retire()


class Slow(FakeRuntime):
    """A runtime in which each removal waits until the expected number of removals are in progress."""

    def __init__(self) -> None:
        super().__init__(images=["image:1"])
        self.together = threading.Barrier(PARALLEL)

    def remove_dead(self, container_id: str) -> None:
        self.together.wait(scratch.HANG_SECONDS)
        super().remove_dead(container_id)


def test_dead_containers_are_removed_eight_at_a_time_with_one_result_each(redis: PrivateRedis, tmp_path: Path) -> None:
    runtime = Slow()
    for number in range(DEAD):
        spec = SandboxSpec(name=f"dead{number}", labels=labels.of_node("node"), image="image:1", hostname="x")
        dead = runtime.create_sandbox(spec)
        runtime.start(dead)
        runtime.end(dead)
    inventory = Inventory(runtime, NoPodLogs(), "node", container_gc.Policy(), parallel=PARALLEL)
    collecting = Collecting(inventory, 3_600, Turns(PARALLEL))
    kind = container_gc_actor.kind(collecting.effects(), collecting.standing())
    with hosted(redis, kind, tmp_path) as log:
        (finished,) = log.wait_for(container_gc.RunFinished)
        assert (finished.removed, finished.failed) == (DEAD, 0)
        (started,) = log.of(container_gc.RunStarted)
        removed = [one.id for one in log.of(container_gc.Removed)]
        assert sorted(removed) == sorted(one.id for one in started.victims)
    assert runtime.list({}) == []
    assert {job.limit for job in collecting.effects().values()} == {PARALLEL}, "a waiting removal takes no thread"


def test_a_paused_container_counts_as_running_in_its_sandbox() -> None:
    runtime = FakeRuntime(images=["image:1"])
    mine = labels.of_node("node")
    sandbox = runtime.create_sandbox(SandboxSpec(name="sandbox", labels=mine, image="image:1", hostname="x"))
    app = runtime.create_container(ContainerSpec(name="app", labels=mine, sandbox_id=sandbox, image="image:1"))
    for one in (sandbox, app):
        runtime.start(one)
    runtime.freeze(app)
    listed = Inventory(runtime, NoPodLogs(), "node", container_gc.Policy()).scan()
    (found,) = [one for one in (*listed.containers, *listed.sandboxes) if one.id == app]
    assert (found.state, found.sandbox_id) == ("running", sandbox)


def test_plugins_are_followed_up_to_the_limit_and_more_are_refused(
    redis: PrivateRedis, tmp_path: Path, short_folder: Path
) -> None:
    plugins = short_folder / "device-plugins"
    deps = devices_effects.DevicesDependencies(
        plugins=GrpcDevicePlugins(plugins, short_folder / "plugins_registry"),
        resources=GrpcPodResources(short_folder / "pod-resources", NodeResources, lambda *_: None),
        live_pods=lambda: (),
        observe_allocate=lambda *_: None,
        max_plugins=30,
    )
    kind = devices_actor.kind(effects=devices_effects.jobs(deps), standing=devices_effects.standing(deps))
    options = [option for number in range(30) for option in ("--resource", f"a.test/r{number}")]
    with hosted(redis, kind, tmp_path) as log, ExitStack() as stack:
        log.wait_for(devices.RegistryOpened)
        before = threading.active_count()
        many = stack.enter_context(sample_plugin(*options, folder=plugins))
        listed = log.wait_for(devices.DevicesListed, 30)
        assert {one.resource for one in listed} == {f"a.test/r{number}" for number in range(30)}
        assert threading.active_count() < before + 15, "plugins take no thread each"
        late = stack.enter_context(sample_plugin("--resource", "b.test/late", folder=plugins))
        assert "30 device plugins are registered" in late.wait_for("refused: ")
        (refused,) = log.wait_for(devices.RegistrationRefused)
        assert (refused.resource, refused.reason) == ("b.test/late", "too_many_plugins")
        many.do("unhealthy thing-0 r7-0")
        assert {one.resource for one in log.wait_for(devices.DevicesListed, 60)[30:]} == {
            one.resource for one in listed
        }
        again = register_again(log, plugins, "a.test/r7", 200)
        assert len(again) < 20, "most registrations of a plugin that registers continuously do not count"
        many.kill()
        assert len(log.wait_for(devices.PluginStopped, 30)) == 30


def register_again(log: Log, folder: Path, resource: str, times: int) -> list[devices.PluginRegistered]:
    """Register one resource repeatedly over the real socket; return the accepted registrations once the newest one is
    followed.
    """
    request = api.RegisterRequest(
        version="v1beta1", endpoint=f"{resource.replace('.', '_').replace('/', '_')}.sock", resource_name=resource
    )
    with grpc_sockets.channel(str(folder / "kubelet.sock")) as channel:
        register = channel.unary_unary(
            "/v1beta1.Registration/Register", api.RegisterRequest.SerializeToString, api.Empty.FromString
        )
        for _ in range(times):
            register(request, timeout=scratch.HANG_SECONDS)

    def counted() -> list[devices.PluginRegistered]:
        return [one for one in log.of(devices.PluginRegistered) if one.resource == resource]

    def followed() -> bool:
        newest = counted()[-1].generation
        return len(counted()) >= BURST_REGISTRATIONS and newest in {
            one.generation for one in log.of(devices.DevicesListed)
        }

    scratch.wait_until(followed, "the list of the newest registration")
    return counted()
