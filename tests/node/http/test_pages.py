"""The node's pages: their sources, how often the sources are read, and the responses when a source is unavailable."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.machine.usage import look
from chronolet.history.entries import NoArchive
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.node.http.fresh import BusyError, Cached, Rendered
from chronolet.node.http.pages import configz, pod_pages, runtime_pages
from chronolet.node.http.server import Response
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import Secret
from chronolet.pod import actor as pod_actor
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerSpec, SandboxSpec
from tests.support.scratch import HANG_SECONDS

IMAGE = "busybox:1"


def owner(container: str, pod: str = "default/web") -> dict[str, str]:
    return labels.written("n", labels.Owner(pod=pod, uid=f"uid-{pod}", container=container, attempt=0))


@pytest.fixture
def runtime() -> FakeRuntime:
    """A runtime with a pod that has one running container and one that was created but not started."""
    fake = FakeRuntime(images=[IMAGE], now=lambda: 1_000)
    box = fake.create_sandbox(SandboxSpec(name="box", labels=owner("POD"), image=IMAGE, hostname="web"))
    fake.start(box)
    for name in ("app", "side"):
        made = fake.create_container(ContainerSpec(name=name, labels=owner(name), sandbox_id=box, image=IMAGE))
        if name == "app":
            fake.start(made)
    return fake


def settings(folder: Path) -> Settings:
    return Settings(node="n", root_dir=folder, redis="redis://:secret@localhost:6379")


def body(answer: Response) -> dict[str, object]:
    assert (answer.status, answer.content_type) == (200, "application/json"), answer
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


def test_running_pods_are_those_of_the_runtime(runtime: FakeRuntime, tmp_path: Path) -> None:
    shown = body(runtime_pages(settings(tmp_path), runtime)["/runningpods"]({}))
    assert shown == {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {},
        "items": [
            {
                "metadata": {
                    "name": "web",
                    "namespace": "default",
                    "uid": "uid-default/web",
                    "creationTimestamp": None,
                },
                "spec": {"containers": [{"name": "app", "image": IMAGE, "resources": {}}]},
                "status": {},
            }
        ],
    }


def test_an_unavailable_runtime_is_reported(runtime: FakeRuntime, tmp_path: Path) -> None:
    pages = runtime_pages(settings(tmp_path), runtime)
    runtime.go_down()
    assert pages["/runningpods"]({}) == Response(503, b"the fake runtime is down\n")
    runtime.come_up()
    assert pages["/runningpods"]({}).status == 200, "the runtime is called again immediately"


def test_an_empty_log_has_no_pods(tmp_path: Path) -> None:
    store = MemoryStore(MemoryServer(lambda: 0))
    page = pod_pages(settings(tmp_path), store, NoArchive(), pod_actor.kind())["/pods"]
    assert body(page({}))["items"] == []


def test_configz_has_the_kubelets_names_and_no_password(tmp_path: Path) -> None:
    hook = "https://me:secret@hooks.example:8443/T0/secret?token=secret"
    redis = "redis://:secret@localhost:6379?password=secret"
    docker = "ssh://me:secret@host"
    configured = replace(
        settings(tmp_path),
        event_webhook_url=hook,
        tracing_endpoint="http://me:secret@traces.example:4318/v1/traces",
        redis=redis,
        docker=docker,
        redis_password=Secret("secret"),
    )
    page = configz(configured)({})
    shown = body(page)
    kubelet, own = shown["kubeletconfig"], shown["chronolet"]
    assert isinstance(kubelet, dict)
    assert isinstance(own, dict)
    assert (kubelet["fileCheckFrequency"], kubelet["logging"]) == ("20s", {"format": "text"})
    assert own["event-webhook-url"] == "https://hooks.example:8443"
    assert b"secret" not in page.body.replace(b"event-webhook-secret-file", b"")
    assert own["tracing-endpoint"] == "http://traces.example:4318"
    assert own["docker"] == "ssh://host"
    assert (own["redis"], own["node"], own["pleg-relist-threshold"]) == ("redis://localhost:6379", "n", "3m0s")


def test_waiting_for_a_value_that_another_thread_computes_is_limited() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def make() -> int:
        begun.set()
        go_on.wait(HANG_SECONDS)
        return 7

    value = Cached(make, seconds=HANG_SECONDS, patience=0.05)
    maker = threading.Thread(target=value.get)
    maker.start()
    assert begun.wait(HANG_SECONDS)
    with pytest.raises(BusyError):
        value.get()
    go_on.set()
    maker.join()
    assert value.get() == 7


def test_a_value_is_encoded_once() -> None:
    values: list[object] = ["a"]
    count = iter(range(9))
    page = Rendered(lambda: values[-1], lambda one: (one, next(count)))
    assert page.get() == page.get() == ("a", 0)
    values.append("b")
    assert page.get() == ("b", 1)


def test_a_value_that_could_not_be_computed_is_computed_again() -> None:
    answers: Iterator[int | Exception] = iter([ZeroDivisionError(), 1, 2])

    def make() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    value = Cached(make, seconds=-1, patience=1)
    with pytest.raises(ZeroDivisionError):
        value.get()
    assert (value.get(), value.get()) == (1, 2), "no value is recent enough"


def test_the_usage_of_this_machine_is_measured(tmp_path: Path) -> None:
    now = look(tmp_path)
    assert now.usage.cpu_nanoseconds > 0
    assert 0 < now.usage.working_set_bytes <= now.usage.memory_bytes < now.usage.limits.memory_bytes
    assert now.capacity_bytes >= now.available_bytes > 0
    assert now.booted_at < now.usage.at
    assert not [one for one in now.usage.interfaces if one.name == "lo"]
    assert now.processors > 0
    has_figures = Path("/proc/pressure/cpu").exists()
    assert (now.usage.pressures.cpu is not None) == has_figures
