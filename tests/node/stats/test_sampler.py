"""The sampler on a node simulated by plain files: what it reads, how often, and when changes become visible."""

import time
from pathlib import Path

import pytest

from chronolet.adapters.machine.usage import Machine
from chronolet.node.http.fresh import BusyError
from chronolet.node.stats.sampler import Waits
from chronolet.node.stats.samples import PodSample
from chronolet.node.stats.tracked import _ALL_ROUNDS
from chronolet.ports.runtime.runtime import SandboxSpec
from tests.node.stats.nodes import UNLISTED, Sampled, machine, state
from tests.support.machine.cgroup_trees import Kind
from tests.support.scratch import HANG_SECONDS, wait_until


@pytest.fixture(params=["v1", "v2", "both"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Sampled:
    kind: Kind = request.param
    return Sampled(tmp_path, kind)


def round_of(node: Sampled) -> tuple[tuple[PodSample, ...], int]:
    """Run a sampling round; returns its pods and the number of files that it read."""
    before = node.files.reads
    node.sampler.sample()
    return node.sampler.latest().pods, node.files.reads - before


def pods_of(node: Sampled) -> tuple[PodSample, ...]:
    return round_of(node)[0]


def another_millisecond() -> None:
    """Wait for the next millisecond: two samples in the same millisecond give no rate."""
    before = int(time.time() * 1000)
    wait_until(lambda: time.time() * 1000 > before + 1, "another millisecond")


def test_a_pod_is_sampled_with_containers_cgroup_and_network(node: Sampled) -> None:
    path = node.pod(containers=("side", "app"))
    (web,) = node.sampler.latest().pods
    assert (web.namespace, web.name, web.uid) == ("default", "web-0", "uid-0")
    assert [one.name for one in web.containers] == ["app", "side"]
    assert web.whole is not None
    assert web.whole.path == path
    assert web.sandbox is not None
    assert [one.rx_packets for one in web.sandbox.measured.usage.interfaces] == [2]
    assert web.containers[0].measured.usage.cpu_nanoseconds == 5_000
    assert (node.lists, node.inspected) == (1, []), "Docker lists once and inspects no container"


def test_a_pod_on_the_hosts_network_has_no_network_usage(node: Sampled) -> None:
    node.pod(host_network=True)
    (web,) = node.sampler.latest().pods
    assert web.sandbox is not None
    assert web.sandbox.measured.usage.interfaces == ()


def test_rates_are_those_between_two_samples(node: Sampled) -> None:
    path, app = node.pod(), state(0, "app").id
    (first,) = pods_of(node)
    assert first.containers[0].measured.nano_cores is None
    before = first.containers[0].measured.usage.at
    another_millisecond()
    node.trees.busy(path, cpu=2_000_000)
    node.trees.busy(f"{path}/{app}", cpu=1_005_000)
    (second,) = pods_of(node)
    passed = second.containers[0].measured.usage.at - before
    assert second.containers[0].measured.nano_cores == 1_000_000 * 1_000 // passed
    snapshot = node.sampler.latest()
    assert snapshot.node.nano_cores == 1_000_000_000, "one busy processor"


def test_a_restarted_container_has_no_rate(node: Sampled) -> None:
    path, app = node.pod(), state(0, "app").id
    pods_of(node)
    for one in (path, f"{path}/{app}"):
        node.trees.busy(one, cpu=1_000, memory=901)
    (web,) = pods_of(node)
    assert web.containers[0].measured.nano_cores is None
    assert web.whole is not None
    assert web.whole.nano_cores is None


def test_an_idle_pod_costs_three_reads_and_is_read_fully_now_and_then(node: Sampled) -> None:
    count = 20
    for number in range(count):
        node.pod(number)
    first_pods, first = round_of(node)
    assert len(first_pods) == count
    assert first > 30 * count
    costs = []
    for _ in range(2 * _ALL_ROUNDS):
        another_millisecond()
        costs.append(round_of(node)[1])
    # Pods are skipped in every other round, except in the first rounds, before a rate is known.
    expected = (_ALL_ROUNDS + 2) * 3 * count + 2 * count * (first // count)
    assert sum(costs) <= expected
    assert max(costs) < first, "full reads are spread over the rounds"
    pods = node.sampler.latest().pods
    assert {one.containers[0].measured.nano_cores for one in pods} <= {0, None}


@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_activity_of_a_quiet_pod_is_seen_at_most_two_rounds_later(node: Sampled, rounds: int) -> None:
    path, app = node.pod(), state(0, "app").id
    for _ in range(rounds):
        another_millisecond()
        pods_of(node)
    node.trees.busy(path, cpu=8_000)
    node.trees.busy(f"{path}/{app}", cpu=7_000)
    seen = [pods_of(node)[0].containers[0].measured.usage.cpu_nanoseconds for _ in range(2)]
    assert seen in ([5_000, 7_000], [7_000, 7_000])
    node.trees.busy(path, cpu=8_000, memory=2_000)
    node.trees.busy(f"{path}/{app}", cpu=7_000, memory=1_500)
    pods_of(node)
    (web,) = pods_of(node)
    assert web.containers[0].measured.usage.memory_bytes == 1_500


def test_a_quiet_pod_is_read_in_every_other_round_and_a_busy_one_in_each(node: Sampled) -> None:
    little, busy = node.pod(0), node.pod(1)
    used = 5_000
    ages: list[tuple[int, int]] = []
    for number in range(2 * _ALL_ROUNDS):
        used += 60_000_000_000
        another_millisecond()
        node.trees.busy(little, cpu=5_000 + 1_000 * number)
        node.trees.busy(busy, cpu=used)
        quiet, working = pods_of(node)
        assert quiet.whole is not None
        assert working.whole is not None
        ages.append(
            (5_000 + 1_000 * number - quiet.whole.usage.cpu_nanoseconds, used - working.whole.usage.cpu_nanoseconds)
        )
    assert {one for _, one in ages} == {0}, "a busy pod is always from this round"
    assert [one for one, _ in ages][2:] in ([0, 1_000] * (_ALL_ROUNDS - 1), [1_000, 0] * (_ALL_ROUNDS - 1))


def test_a_quiet_pod_is_read_when_its_containers_change(node: Sampled) -> None:
    node.pod()
    for _ in range(5):
        another_millisecond()
        pods_of(node)
    assert isinstance(node.listing, list)
    again = state(0, "app", attempt=1)
    node.listing = [one for one in node.listing if one.id != state(0, "app").id] + [again]
    node.trees.pod("uid-0", [again.id])
    node.listed()
    for _ in range(2):
        (web,) = pods_of(node)
        assert [one.container.id for one in web.containers] == [again.id]


def test_ended_containers_and_pods_are_omitted(node: Sampled) -> None:
    first, second = node.pod(0), node.pod(1)
    assert len(pods_of(node)) == 2
    node.trees.end(second)
    node.trees.busy(first, cpu=9_000)
    node.trees.end(f"{first}/{state(0, 'app').id}")
    (web,) = pods_of(node)
    assert (web.uid, web.containers) == ("uid-0", ())
    assert node.sampler.latest().errors == 0
    node.listing = []
    node.listed()
    assert pods_of(node) == ()


def test_an_unreadable_cgroup_is_omitted_and_counted(node: Sampled) -> None:
    path = node.pod()
    node.pod(1)
    app = state(0, "app").id
    name = "cpu.stat" if node.trees.kind == "v2" else "cpuacct.usage"
    node.trees.file(f"{path}/{app}", "cpuacct", name).write_text("usage_usec nonsense\n")
    web, other = pods_of(node)
    assert (web.containers, len(other.containers)) == ((), 1)
    assert node.sampler.latest().errors == 1
    node.trees.busy(path, cpu=9_000)
    node.trees.busy(f"{path}/{app}", cpu=9_000)
    web, _ = pods_of(node)
    assert (len(web.containers), node.sampler.latest().errors) == (1, 0)


def test_values_that_rarely_change_are_read_rarely(node: Sampled) -> None:
    path, app = node.pod(), state(0, "app").id
    pods_of(node)
    limit, threads = (
        ("memory.max", "pids.current") if node.trees.kind == "v2" else ("memory.limit_in_bytes", "pids.current")
    )
    node.trees.file(f"{path}/{app}", "memory", limit).write_text("4096\n")
    node.trees.file(f"{path}/{app}", "pids", threads).write_text("9\n")
    seen, costs = [], []
    for number in range(_ALL_ROUNDS):
        for one in (path, f"{path}/{app}"):
            node.trees.busy(one, cpu=(number + 9) * 10**10)
        (web,), cost = round_of(node)
        usage = web.containers[0].measured.usage
        assert usage.cpu_nanoseconds == (number + 9) * 10**10
        seen.append((usage.threads, usage.limits.memory_bytes))
        costs.append(cost)
    assert (seen[0], seen[-1]) == ((3, 0), (9, 4096))
    assert min(costs) <= 12, "a busy pod with one container"
    assert sum(costs) <= _ALL_ROUNDS * 12 + 2 * 15 + 30


def test_a_container_that_has_just_started_is_sampled_for_the_next_page(node: Sampled) -> None:
    node.pod(0)
    pods_of(node)
    box = state(1, "POD")
    node.trees.pod("uid-1", [box.id])
    spec = SandboxSpec(name=box.name, labels=box.labels, image=box.image, hostname="h")
    node.running.created(box.id, spec)
    assert len(node.sampler.latest().pods) == 1
    node.running.started(box.id)
    before = node.files.reads
    web, new = node.sampler.latest().pods
    assert (web.uid, new.uid) == ("uid-0", "uid-1")
    assert node.files.reads - before < 60, "the others are not read again"
    before = node.files.reads
    assert len(node.sampler.latest().pods) == 2
    assert (node.files.reads, node.lists) == (before, 1)


def test_a_missing_cgroup_is_searched_for_less_and_less_often(node: Sampled) -> None:
    """Containers of an engine on another machine, for example, have no cgroup here."""
    assert isinstance(node.listing, list)
    node.listing.append(state(0, "app"))
    assert node.sampler.latest().pods == ()
    for _ in range(30):
        assert pods_of(node) == ()
    assert len(node.inspected) == 5


def test_without_a_listing_there_is_no_sample_until_one_succeeds(node: Sampled) -> None:
    node.listing = UNLISTED
    with pytest.raises(type(UNLISTED), match="no answer"):
        node.sampler.latest()
    node.listing = []
    node.pod()
    assert len(node.sampler.latest().pods) == 1


def test_a_listing_of_pleg_is_used(node: Sampled) -> None:
    node.pod()
    node.listed()
    assert len(node.sampler.latest().pods) == 1
    assert node.lists == 0


def test_an_unavailable_engine_does_not_stop_the_samples(node: Sampled) -> None:
    node.pod()
    pods_of(node)
    node.running.listed(node.listing, time.monotonic() - 10_000)  # type: ignore[arg-type]
    node.listing = UNLISTED
    assert len(pods_of(node)) == 1
    assert len(pods_of(node)) == 1
    assert node.lists == 2, "it is not called in every round"


def test_a_page_waits_a_limited_time_for_the_first_sample(tmp_path: Path) -> None:
    node = Sampled(tmp_path, waits=Waits(first=0.01))
    with node.sampler._lock, pytest.raises(BusyError):
        node.sampler.latest()


def test_a_page_does_not_wait_for_a_round(node: Sampled) -> None:
    node.pod()
    pods_of(node)
    node.pod(1)
    node.listed()
    with node.sampler._lock:
        assert len(node.sampler.latest().pods) == 1
    assert len(node.sampler.latest().pods) == 2


def test_the_thread_samples_immediately_and_then_periodically(tmp_path: Path) -> None:
    node = Sampled(tmp_path, period=0.01, waits=Waits(end=HANG_SECONDS))
    node.pod()
    node.sampler.start()
    try:
        wait_until(lambda: node.clock > 4_000, "three samples")
        assert len(node.sampler.latest().pods) == 1
    finally:
        node.sampler.stop()
    assert not node.sampler._thread.is_alive()


@pytest.mark.parametrize("error", [UNLISTED, OSError("no /proc"), KeyError("MemTotal")])
def test_the_thread_survives_errors_of_its_sources(tmp_path: Path, error: Exception) -> None:
    node = Sampled(tmp_path, period=0.01)
    calls = []

    def look() -> Machine:
        calls.append(error)
        if len(calls) < 3:
            raise error
        return machine(1_000, 0)

    node.machine = look  # type: ignore[method-assign]
    sampler = node.new_sampler()
    sampler.start()
    try:
        wait_until(lambda: sampler._last is not None, "a sample after two failures")
    finally:
        sampler.stop()


def test_sizes_of_layers_and_logs_are_added(tmp_path: Path) -> None:
    node = Sampled(tmp_path)
    path, app = node.pod(), state(0, "app").id
    layer = tmp_path / "layer"
    (layer / "inner").mkdir(parents=True)
    (layer / "inner/file").write_bytes(b"x" * 10_000)
    pid = int(node.trees.file(f"{path}/{app}", "memory", "cgroup.procs").read_text())
    mount = f"1 0 0:9 / / rw - overlay overlay rw,lowerdir=/l,upperdir={layer},workdir=/w\n"
    (node.trees.proc / f"{pid}/mountinfo").write_text(mount)
    log = node.logs / "default_web-0_uid-0/app/0.log"
    log.parent.mkdir(parents=True)
    log.write_text("said\n")
    (web,) = pods_of(node)
    assert (web.containers[0].layer, web.containers[0].log_bytes) == (None, 5)
    node.disk.walk()
    (web,) = pods_of(node)
    used = web.containers[0].layer
    assert used is not None
    assert used.used_bytes >= 10_000
    assert used.inodes == 3
    images = node.sampler.latest().images
    assert images is not None
    assert images.capacity_bytes >= images.available_bytes > 0
    assert web.sandbox is not None
    assert web.sandbox.layer is None, "the root of its process is not an overlay"
