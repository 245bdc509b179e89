"""A node's log with devices, and the kind `devices`, hosted by the real kernel in this process.

Input: a redis-server. Output: messages and a host for the parts of the benchmark.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chronolet.devices import actor, signals, wanted
from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import EffectContext, Job, Kind
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, devices, kernel, pod, registry
from chronolet_schemas.envelope import Event, Record
from tests.support import scratch

SHARDS = {"devices": 1, "pod": 1}
GPU = "vendor.test/gpu"
DEVICES = 1_000
ANSWER = devices.Answer(
    envs={"VISIBLE_DEVICES": "0"},
    devices=(devices.DeviceNode(container_path="/dev/gpu0", host_path="/dev/gpu0", permissions="rw"),),
)


def begin(store: RedisStore, node: str) -> None:
    """Load the kernel's functions into Redis and start the node's log."""
    store.check()
    started = kernel.LogStarted(run=uuid.uuid4().hex, node=node, shards=SHARDS)
    record = Record(registry.type_of(kernel.LogStarted), f"node/{node}", "", "bench", "", codec.encode(started))
    store.begin(started.run, SHARDS, record)


def record(entity: str, event: Event, actor_name: str) -> Record:
    """Convert the event to a record of the log."""
    return Record(registry.type_of(type(event)), entity, event.subject(), actor_name, "", codec.encode(event))


def listing() -> tuple[devices.DeviceInfo, ...]:
    """Return the devices, all healthy."""
    return tuple(devices.DeviceInfo(id=f"gpu-{number:05}", health="Healthy") for number in range(DEVICES))


def registering() -> signals.PluginRegistering:
    """Return the message with which the plugin registers."""
    return signals.PluginRegistering(
        resource=GPU,
        versions=("v1beta1",),
        endpoint="gpu.sock",
        folder="/plugins",
        options=devices.PluginOptions(),
    )


def request(uid: str, count: int) -> pod.DevicesRequested:
    """Return a pod's request for `count` devices."""
    return pod.DevicesRequested(
        pod=f"default/{uid}", uid=uid, container="app", role="app", resources={GPU: count}, requested_at=1
    )


class Plugin:
    """A fake plugin that answers immediately. `kind` returns the kind `devices` with this plugin; `calls` contains the
    durations of its answers, in seconds.
    """

    def __init__(self) -> None:
        self.calls: list[float] = []

    def kind(self) -> Kind[Any]:
        standing = {
            wanted.ServeRegistration: self._serve,
            wanted.WatchDevices: self._list,
        }
        others = [one for one in wanted.Wanted.__args__ if one not in (*standing, wanted.Allocate)]
        return actor.kind(
            effects={wanted.Allocate: Job(self._allocate)},
            standing={name: Job(run) for name, run in standing.items()} | {one: Job(_wait) for one in others},
        )

    def _serve(self, _: wanted.ServeRegistration, context: EffectContext) -> None:
        context.send(signals.RegistryOpened())
        context.send(registering())
        context.cancelled.wait()

    def _list(self, effect: wanted.WatchDevices, context: EffectContext) -> None:
        context.send(signals.DevicesListing(resource=GPU, generation=effect.generation, devices=listing()))
        context.cancelled.wait()

    def _allocate(self, effect: wanted.Allocate, _: EffectContext) -> signals.AllocateAnswered:
        began = time.perf_counter()
        answer = signals.AllocateAnswered(subject=effect.subject, intent=effect.intent, answers=(ANSWER,))
        self.calls.append(time.perf_counter() - began)
        return answer


def _wait(_: object, context: EffectContext) -> None:
    context.cancelled.wait()


@contextmanager
def hosted(url: str, node: str, kind: Kind[Any], locks: Path) -> Iterator[Process]:
    """Yield a kernel `Process` that hosts this kind on threads of this process; retire it after the block."""
    process = Process(
        Setup(node=node, store=RedisStore(url, node), kinds={kind.name: kind}, shards=SHARDS, locks=locks)
    )
    process.start()
    try:
        scratch.wait_until(lambda: process.phase == "running", "the kernel's process")
        yield process
    finally:
        process.retire()
        assert not [one for one in threading.enumerate() if one.name.startswith("devices/")]
