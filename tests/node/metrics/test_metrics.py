"""Metrics under the kubelet's names, updated by steps and runtime calls."""

import itertools

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.kernel.observer import Observer
from chronolet.node.metrics.measured_runtime import MeasuredRuntime, RelistedRuntime
from chronolet.node.metrics.metrics import Metrics
from chronolet.node.stats.running import Running
from chronolet.ports.runtime.runtime import ContainerSpec, Refusal, SandboxSpec
from chronolet_schemas import container_gc, image_gc, keeper, kube_events, pod
from chronolet_schemas.keys import Shard

ABOUT = {"pod": "default/web", "uid": "u", "attempt": 0}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("node-1")


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = metrics.page({}).body.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[name, tuple(sorted(labels.items()))]


def test_the_metrics_of_dashboards_exist_from_the_start(metrics: Metrics) -> None:
    metrics.running(2, {"running": 3, "exited": 1})
    assert value(metrics, "kubelet_node_name", node="node-1") == 1
    assert value(metrics, "kubelet_running_pods") == 2
    assert value(metrics, "kubelet_running_containers", container_state="running") == 3
    names = {name for name, _ in samples(metrics)}
    assert not [name for name in names if name.endswith("_created")]
    assert names >= {
        "kubelet_started_pods_total",
        "kubelet_pleg_relist_duration_seconds_bucket",
        "kubelet_pleg_relist_interval_seconds_count",
        "kubelet_pleg_last_seen_seconds",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "chronolet_lease_valid",
        "chronolet_step_duration_seconds_sum",
    }


def _exited(reason: str) -> pod.ContainerExited:
    return pod.ContainerExited(
        **ABOUT, container="app", id="c", exit_code=137, reason=reason, started_at=1, finished_at=2
    )


def test_a_step_changes_its_own_metrics_and_those_of_the_kubelet(metrics: Metrics) -> None:
    events = (
        pod.SandboxStarted(**ABOUT, id="s", started_at=1),
        pod.ContainerStarted(**ABOUT, container="app", id="c", started_at=1),
        pod.ContainerStartFailed(
            **ABOUT, container="app", reason="RunContainerError", message="m", failed_at=1, failures=1, retry_at=2
        ),
        _exited("ContainerStatusUnknown"),
        _exited("Error"),
    )
    metrics.step_done(Shard("pod", 3), events, 0.002)
    metrics.step_done(Shard("pod", 3), (), 0.001)
    assert value(metrics, "chronolet_steps_total", shard="pod/3") == 2
    assert value(metrics, "chronolet_events_total", kind="pod") == 5
    assert value(metrics, "chronolet_container_exits_unknown_total") == 1
    assert value(metrics, "kubelet_started_pods_total") == 1
    assert value(metrics, "kubelet_started_containers_total", container_type="container") == 1
    errors = value(
        metrics, "kubelet_started_containers_errors_total", container_type="container", code="RunContainerError"
    )
    assert errors == 1


def test_metrics_fulfil_the_observer_port(metrics: Metrics) -> None:
    observer: Observer = metrics
    observer.effect_started("pod", "StartContainer", began=1.0)
    assert value(metrics, "chronolet_effects_running", kind="pod", effect="StartContainer") == 1
    observer.effect_done("pod", "StartContainer", 0.5, "done", began=1.0)
    assert value(metrics, "chronolet_effects_running", kind="pod", effect="StartContainer") == 0
    assert value(metrics, "chronolet_effects_total", kind="pod", effect="StartContainer", outcome="done") == 1
    observer.lease_valid(True)
    observer.shards_owned(7)
    observer.host_restarted(Shard("pleg"))
    observer.dead_lettered("pod")
    observer.recovered(7, 100, 0.25)
    observer.step_refused(Shard("pleg"), "fenced")
    assert value(metrics, "chronolet_lease_valid") == 1
    assert value(metrics, "chronolet_shards_owned") == 7
    assert value(metrics, "chronolet_host_restarts_total", shard="pleg") == 1
    assert value(metrics, "chronolet_dead_letters_total", kind="pod") == 1
    assert value(metrics, "chronolet_recovered_events_total") == 100
    assert value(metrics, "chronolet_steps_refused_total", shard="pleg", reason="fenced") == 1


def test_runtime_calls_are_counted_and_refusals_are_errors(metrics: Metrics) -> None:
    fake = FakeRuntime()
    runtime = MeasuredRuntime(fake, metrics)
    runtime.list({})
    fake.go_down()
    with pytest.raises(Refusal):
        runtime.list({})
    operation = {"operation_type": "list_containers"}
    assert value(metrics, "kubelet_runtime_operations_total", **operation) == 2
    assert value(metrics, "kubelet_runtime_operations_errors_total", **operation) == 1
    assert value(metrics, "kubelet_runtime_operations_duration_seconds_count", **operation) == 2


def labelled(name: str) -> dict[str, str]:
    return {"io.kubernetes.container.name": name, "chronolet/node": "node-1"}


def test_a_relist_updates_the_running_pods_and_containers(metrics: Metrics) -> None:
    fake = FakeRuntime(images=["box"])
    sandbox = SandboxSpec(name="s", labels=labelled("POD"), image="box", hostname="h")
    ids = [fake.create_sandbox(sandbox)]
    for name in ("a", "b"):
        spec = ContainerSpec(name=name, labels=labelled(name), sandbox_id=ids[0], image="box")
        ids.append(fake.create_container(spec))
    fake.start(ids[0])
    fake.start(ids[1])
    runtime = RelistedRuntime(fake, metrics, 3_600_000)
    assert runtime.unhealthy() == "pleg has yet to be successful"
    assert len(runtime.list({"chronolet/node": "node-1"})) == 3
    assert runtime.unhealthy() == ""
    assert value(metrics, "kubelet_running_pods") == 1
    assert value(metrics, "kubelet_running_containers", container_state="running") == 1
    assert value(metrics, "kubelet_running_containers", container_state="created") == 1
    fake.end(ids[1])
    runtime.list({})
    assert value(metrics, "kubelet_running_containers", container_state="running") == 0
    assert value(metrics, "kubelet_running_containers", container_state="exited") == 1


def test_relists_are_measured_by_duration_interval_and_age(metrics: Metrics) -> None:
    clock = itertools.count(1_000)
    fake = FakeRuntime()
    runtime = RelistedRuntime(fake, metrics, 0, monotonic=lambda: next(clock))
    runtime.list({})
    seen = value(metrics, "kubelet_pleg_last_seen_seconds")
    assert seen > 1_000_000_000
    fake.go_down()
    with pytest.raises(Refusal):
        runtime.list({})
    assert value(metrics, "kubelet_pleg_relist_duration_seconds_count") == 2
    assert value(metrics, "kubelet_pleg_relist_interval_seconds_count") == 1
    assert value(metrics, "kubelet_pleg_last_seen_seconds") == seen, "a failed relist does not count as seen"
    assert runtime.unhealthy() == "pleg was last seen active 0s ago; threshold is 0s"


def test_running_containers_follow_the_answers_of_the_runtime(metrics: Metrics) -> None:
    running, fake = Running(), FakeRuntime(images=["box"])
    runtime, relisted = MeasuredRuntime(fake, metrics, running), RelistedRuntime(fake, metrics, 60_000, running)
    box = runtime.create_sandbox(SandboxSpec(name="s", labels=labelled("POD"), image="box", hostname="h"))
    app = runtime.create_container(ContainerSpec(name="a", labels=labelled("a"), sandbox_id=box, image="box"))
    with pytest.raises(Refusal):
        runtime.start("0" * 64)
    assert running.now() == {}
    runtime.start(box)
    runtime.start(app)
    assert running.now().keys() == {box, app}
    fake.end(app)
    relisted.list({"chronolet/node": "node-1"})
    assert running.now().keys() == {box}
    runtime.remove_dead(app)
    runtime.remove(box)
    assert running.now() == {}


def test_kube_events_are_counted_at_each_stage(metrics: Metrics) -> None:
    post = kube_events.Post(
        at="1-1", name="n", first=1, object_kind="Pod", object_name="o", severity="Normal", reason="R", message="m"
    )
    correlated = kube_events.Correlated(
        heard=5, upto="1-5", suppressed=2, first_number=1, posts=(post,) * 3, known={}, similar={}, tokens={}
    )
    failed = kube_events.DeliveryFailed(sink="webhook", number=2, name="n", tries=1, error="e", retry_at=9)
    settled = (
        kube_events.Delivered(sink="webhook", upto=1, count=1),
        failed,
        kube_events.DeliveryResumed(sink="webhook", number=2),
        kube_events.GivenUp(sink="webhook", first=2, last=3, count=2, reason="tries"),
    )
    metrics.step_done(Shard("kube_events"), (correlated, *settled), 0.001)
    assert value(metrics, "chronolet_kube_events_recorded_total") == 5
    assert value(metrics, "chronolet_kube_events_suppressed_total") == 2
    assert value(metrics, "chronolet_kube_event_posts_total") == 3
    deliveries = "chronolet_kube_event_deliveries_total"
    outcomes = {name: value(metrics, deliveries, sink="webhook", outcome=name) for name in ("delivered", "failed")}
    assert outcomes == {"delivered": 1, "failed": 1}
    assert value(metrics, deliveries, sink="webhook", outcome="given_up_tries") == 2


def test_the_work_of_the_collectors_is_counted(metrics: Metrics) -> None:
    started = image_gc.RunStarted(run=1, operation="collect", trigger="period", at=1, candidates=())
    one = {"run": 1, "name": "a:1", "size_bytes": 5, "reason": "space"}
    finished = image_gc.RunFinished(
        run=1,
        operation="collect",
        trigger="period",
        at=2,
        milliseconds=1_500,
        capacity_bytes=100,
        usage_percent=90,
        wanted_bytes=10,
        freed_bytes=5,
        removed=1,
        failed=1,
        kept={"in_use": 2, "young": 1, "pinned": 3, "enough_freed": 4, "just_used": 1},
        error="refused",
    )
    idle = image_gc.RunFinished(run=2, operation="collect", trigger="period", at=3, usage_percent=10, capacity_bytes=9)
    events = (started, image_gc.ImageRemoved(id="a", **one), image_gc.ImageNotRemoved(id="b", error="no", **one))
    metrics.step_done(Shard("image_gc"), (*events, finished, idle), 0.001)
    assert value(metrics, "kubelet_image_garbage_collected_total", reason="space") == 1
    run = {"operation": "collect", "trigger": "period"}
    attempts = "kubelet_image_gc_attempts_total"
    assert value(metrics, attempts, result="error", reason="deletion_failed", **run) == 1
    assert value(metrics, attempts, result="noop", reason="below_threshold", **run) == 1
    assert value(metrics, "kubelet_image_gc_duration_seconds_sum", result="error", **run) == 1.5
    assert value(metrics, "kubelet_image_gc_freed_bytes_sum", **run) == 5
    assert value(metrics, "kubelet_image_gc_target_bytes_sum", **run) == 10
    deletions = "kubelet_image_gc_image_deletions_total"
    assert value(metrics, deletions, reason="space", result="success", **run) == 1
    assert value(metrics, deletions, reason="space", result="error", **run) == 1
    skipped = {
        reason: value(metrics, "kubelet_image_gc_skipped_images_total", reason=reason, **run)
        for reason in ("in_use", "min_age", "pinned", "other")
    }
    assert skipped == {"in_use": 2, "min_age": 1, "pinned": 3, "other": 5}
    assert value(metrics, "kubelet_image_gc_image_fs_usage_percent", phase="before") == 10
    metrics.step_done(Shard("image_gc"), (image_gc.ImageRemoved(id="c", **one | {"reason": "unused"}),), 0.001)
    assert value(metrics, "kubelet_image_garbage_collected_total", reason="space") == 2
    gone = container_gc.Removed(run=1, what="container", id="k", name="n", rule="per_container_limit")
    ended = container_gc.RunFinished(run=1, trigger="request", at=5, milliseconds=20, removed=1)
    metrics.step_done(Shard("container_gc"), (gone, ended), 0.001)
    removals = {"what": "container", "rule": "per_container_limit", "result": "success"}
    assert value(metrics, "chronolet_container_gc_removals_total", **removals) == 1
    assert value(metrics, "chronolet_container_gc_runs_total", trigger="request", result="success") == 1


def test_the_jobs_about_probe_outcomes_are_counted(metrics: Metrics) -> None:
    events = (
        (
            "write_probes",
            "done",
            keeper.ProbesArchived(file="f", after="", upto="", outcomes=1, size_bytes=1, sha256=""),
        ),
        ("write_probes", "failed", keeper.ProbeArchiveFailed(error="disk", retry_at=1)),
        ("delete_probes", "done", keeper.ProbesDeleted(files=("f",), upto="1-0")),
        ("delete_probes", "failed", keeper.ProbeDeletionFailed(error="disk", retry_at=1)),
    )
    for job, outcome, event in events:
        assert value(metrics, "chronolet_archive_jobs_total", job=job, outcome=outcome) == 0
        metrics.archive.count(event)
        assert value(metrics, "chronolet_archive_jobs_total", job=job, outcome=outcome) == 1
