"""The node's pages: what they are made of, how often, and what they say when that is not to be had."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronolet.adapters.docker_runtime import usage
from chronolet.adapters.fake_runtime import FakeRuntime
from chronolet.adapters.machine import Machine, look
from chronolet.history.entries import NoArchive
from chronolet.kernel.memory_data import MemoryServer
from chronolet.kernel.memory_store import MemoryStore
from chronolet.node.fresh import BusyError, Fresh
from chronolet.node.http import Answer
from chronolet.node.pages import configz, pod_pages, runtime_pages
from chronolet.node.settings import Settings
from chronolet.node.summary import Rates, Sample, summary, without_limit_of
from chronolet.node.values import Secret
from chronolet.pod import actor as pod_actor
from chronolet.ports import labels
from chronolet.ports.runtime import ContainerSpec, ContainerState, Refusal, SandboxSpec, Usage

IMAGE = "busybox:1"


def owner(container: str, pod: str = "default/web") -> dict[str, str]:
    return labels.written("n", labels.Owner(pod=pod, uid=f"uid-{pod}", container=container, attempt=0))


@pytest.fixture
def runtime() -> FakeRuntime:
    """A pod with one container that runs and one that does not."""
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


def body(answer: Answer) -> dict[str, object]:
    assert (answer.status, answer.content_type) == (200, "application/json"), answer
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


def test_running_pods_are_what_the_runtime_runs(runtime: FakeRuntime, tmp_path: Path) -> None:
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


def test_a_page_is_made_once_for_many(runtime: FakeRuntime, tmp_path: Path) -> None:
    pages = runtime_pages(settings(tmp_path / "not" / "made" / "yet"), runtime)
    first = pages["/stats/summary"]({})
    calls = list(runtime.calls)
    assert calls.count("usage") == 2, "of what runs, the sandbox too"
    assert pages["/stats/summary"]({}) == first
    assert runtime.calls == calls


def test_a_runtime_that_is_away_is_said(runtime: FakeRuntime, tmp_path: Path) -> None:
    pages = runtime_pages(settings(tmp_path), runtime)
    runtime.go_down()
    for page in ("/runningpods", "/stats/summary"):
        assert pages[page]({}) == Answer(503, b"the fake runtime is down\n")
    runtime.come_up()
    assert pages["/runningpods"]({}).status == 200, "it is asked again at once"


def test_who_does_not_answer_in_time_is_left_out(runtime: FakeRuntime, tmp_path: Path) -> None:
    runtime.refuse("usage", Refusal("timeout", "no answer"), times=2)
    assert body(runtime_pages(settings(tmp_path), runtime)["/stats/summary"]({}))["pods"] == []


def test_an_empty_log_has_no_pods(tmp_path: Path) -> None:
    store = MemoryStore(MemoryServer(lambda: 0))
    page = pod_pages(settings(tmp_path), store, NoArchive(), pod_actor.kind())["/pods"]
    assert body(page({}))["items"] == []


def test_configz_has_the_kubelets_names_and_no_password(tmp_path: Path) -> None:
    hook = "https://me:secret@hooks.example:8443/T0/secret?token=secret"
    redis = "redis://:secret@localhost:6379?password=secret"
    docker = "ssh://me:secret@host"
    told = replace(
        settings(tmp_path), event_webhook_url=hook, redis=redis, docker=docker, redis_password=Secret("secret")
    )
    page = configz(told)({})
    shown = body(page)
    kubelet, own = shown["kubeletconfig"], shown["chronolet"]
    assert isinstance(kubelet, dict)
    assert isinstance(own, dict)
    assert (kubelet["fileCheckFrequency"], kubelet["logging"]) == ("20s", {"format": "text"})
    assert own["event-webhook-url"] == "https://hooks.example:8443"
    assert b"secret" not in page.body.replace(b"event-webhook-secret-file", b"")
    assert own["docker"] == "ssh://host"
    assert (own["redis"], own["node"], own["pleg-relist-threshold"]) == ("redis://localhost:6379", "n", "3m0s")


def test_nobody_waits_for_ever_for_a_value_that_another_makes() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def make() -> int:
        begun.set()
        go_on.wait(20)
        return 7

    value = Fresh(make, seconds=60, patience=0.05)
    maker = threading.Thread(target=value.get)
    maker.start()
    assert begun.wait(20)
    with pytest.raises(BusyError):
        value.get()
    go_on.set()
    maker.join()
    assert value.get() == 7


def test_a_value_that_could_not_be_made_is_tried_again() -> None:
    answers: Iterator[int | Exception] = iter([ZeroDivisionError(), 1, 2])

    def make() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    value = Fresh(make, seconds=-1, patience=1)
    with pytest.raises(ZeroDivisionError):
        value.get()
    assert (value.get(), value.get()) == (1, 2), "none is young enough"


def machine(at: int, cpu: int) -> Machine:
    return Machine(
        usage=Usage(at=at, cpu_nanoseconds=cpu, memory_limit_bytes=1_000, memory_bytes=600, working_set_bytes=400),
        booted_at=1,
        default_interface="eth0",
        most_processes=99,
        capacity_bytes=10,
        available_bytes=4,
        inodes=3,
        inodes_free=1,
    )


def sample(name: str, at: int, cpu: int, limit: int = 0, around: int | None = None) -> Sample:
    state = ContainerState(id=name, name=name, labels=owner(name), state="running", created_at=5_000)
    above = None if around is None else Usage(at=at, cpu_nanoseconds=around, working_set_bytes=99)
    return Sample(state, Usage(at=at, cpu_nanoseconds=cpu, memory_limit_bytes=limit, working_set_bytes=30), above)


def test_rates_are_those_between_two_looks() -> None:
    rates = Rates()
    first = summary("n", machine(1_000, 0), [sample("app", 1_000, 0), sample("POD", 1_000, 0)], rates)
    assert "usageNanoCores" not in first["node"]["cpu"]
    then = [sample("app", 3_000, 1_000_000_000), sample("POD", 3_000, 2_000_000)]
    second = summary("n", machine(3_000, 4_000_000_000), then, rates)
    assert second["node"]["cpu"] == {
        "time": "1970-01-01T00:00:03Z",
        "usageNanoCores": 2_000_000_000,
        "usageCoreNanoSeconds": 4_000_000_000,
    }
    (web,) = second["pods"]
    assert web["containers"][0]["cpu"]["usageNanoCores"] == 500_000_000
    assert web["cpu"]["usageNanoCores"] == 501_000_000
    assert web["startTime"] == "1970-01-01T00:00:05Z"
    # A container that began anew has used less than before: nothing is known of its rate, nor of its pod's.
    third = summary("n", machine(4_000, 4_000_000_000), [sample("app", 4_000, 7), then[1]], rates)
    assert "usageNanoCores" not in third["pods"][0]["cpu"]


def test_a_pod_has_used_what_its_cgroup_says_whichever_of_its_containers_began_anew() -> None:
    rates = Rates()
    summary("n", machine(1_000, 0), [sample("app", 1_000, 500), sample("POD", 1_000, 0, around=700)], rates)
    then = [sample("app", 3_000, 2), sample("POD", 3_000, 0, around=2_000_000_700)]
    (web,) = summary("n", machine(3_000, 0), then, rates)["pods"]
    assert (web["cpu"]["usageCoreNanoSeconds"], web["cpu"]["usageNanoCores"]) == (2_000_000_700, 1_000_000_000)
    assert web["memory"]["workingSetBytes"] == 99
    assert "usageNanoCores" not in web["containers"][0]["cpu"]


def test_memory_is_available_up_to_a_limit_of_ones_own() -> None:
    now = machine(1_000, 0)
    samples = without_limit_of(now, [sample("app", 1_000, 0, limit=100), sample("side", 1_000, 0, limit=1_000)])
    app, side = summary("n", now, samples, Rates())["pods"][0]["containers"]
    assert app["memory"]["availableBytes"] == 70
    assert "availableBytes" not in side["memory"]


def test_this_machine_uses_something(tmp_path: Path) -> None:
    now = look(tmp_path)
    assert now.usage.cpu_nanoseconds > 0
    assert 0 < now.usage.working_set_bytes <= now.usage.memory_bytes < now.usage.memory_limit_bytes
    assert now.capacity_bytes >= now.available_bytes > 0
    assert now.booted_at < now.usage.at
    assert not [one for one in now.usage.interfaces if one.name == "lo"]


V1 = {
    "usage": 900,
    "limit": 4096,
    "stats": {"total_inactive_file": 100, "total_rss": 300, "rss": 1, "total_pgfault": 7},
}
V2 = {"usage": 900, "limit": 4096, "stats": {"inactive_file": 100, "anon": 300, "pgfault": 7, "pgmajfault": 0}}


@pytest.mark.parametrize("memory", [V1, V2], ids=["v1", "v2"])
def test_memory_is_read_from_either_kind_of_cgroup(memory: dict[str, object]) -> None:
    read = usage.read(json.dumps({"read": "2026-11-21T03:00:00Z", "memory_stats": memory}).encode())
    assert read is not None
    assert (read.memory_bytes, read.working_set_bytes, read.rss_bytes, read.page_faults) == (900, 800, 300, 7)
    assert usage.read(b'{"read": "0001-01-01T00:00:00Z"}') is None
