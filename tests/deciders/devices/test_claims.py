"""Who gets which device, who waits, and who is refused."""

import pytest

from chronolet.devices import signals, wanted
from chronolet.devices.claims import Policy
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import devices, pod
from tests.deciders.devices.scene import FOLDER, GPU, NIC, STRICT, Devices


def test_devices_are_chosen_marked_and_allocated() -> None:
    scene = Devices().plugged("b", "a", "c").asks({GPU: 2})
    chosen = scene.only(devices.DevicesChosen)
    assert (chosen.devices, chosen.wants) == (("a", "b"), {GPU: 2})
    assert scene.has() == {GPU: ("a", "b")}
    assert scene.allocate == wanted.Allocate(
        subject="claim/u1/app",
        intent="allocating/2",
        resource=GPU,
        socket=f"{FOLDER}/gpu.sock",
        devices=("a", "b"),
    )
    scene.allocates(envs={"X": "1"})
    done = scene.only(devices.DevicesAllocated)
    assert done.complete
    assert done.milliseconds == 7
    assert done.allocations() == {GPU: devices.Allocation(devices=("a", "b"), answer=devices.Answer(envs={"X": "1"}))}
    assert "claim/u1/app" not in scene.effects
    assert scene.now.open == ()


def test_one_resource_after_the_other() -> None:
    scene = Devices().plugged("a").plugged("n", resource=NIC).asks({NIC: 1, GPU: 1})
    assert scene.allocate.resource == GPU
    scene.allocates()
    assert not scene.only(devices.DevicesAllocated).complete
    assert scene.only(devices.DevicesChosen).resource == NIC
    assert scene.has() == {GPU: ("a",), NIC: ("n",)}
    scene.allocates()
    done = scene.only(devices.DevicesAllocated)
    assert (done.complete, sorted(done.allocations())) == (True, [GPU, NIC])


def test_who_asks_again_is_told_again() -> None:
    scene = Devices().plugged("a").asks({GPU: 1})
    assert scene.asks({GPU: 1}).events == ()  # it is being allocated
    held = scene.allocates().only(devices.DevicesAllocated).allocations()
    again = scene.asks({GPU: 1}).only(devices.DevicesAllocated)
    assert (again.allocation, again.allocations()) == (None, held)


def test_two_never_get_the_same() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).asks({GPU: 1}, uid="u2")
    # The first one's may come back yet.
    assert scene.pending.reason == "in_turn"
    scene.allocates()
    refused = scene.only(devices.DevicesRefused)
    assert refused.uid == "u2"
    assert refused.message == (f"requested number of devices unavailable for {GPU}. Requested: 1, Available: 0")
    assert sorted(scene.now.claims) == ["u1/app"]


def test_what_a_refused_one_gives_back_goes_to_who_waits() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).asks({GPU: 1}, uid="u2")
    scene.refuses("rpc error: code = Unknown desc = no")
    refused = scene.only(devices.DevicesRefused)
    assert (refused.uid, refused.reason, refused.message) == (
        "u1",
        "plugin_error",
        "rpc error: code = Unknown desc = no",
    )
    assert scene.only(devices.DevicesChosen).uid == "u2"


def test_not_yet_without_a_plugin() -> None:
    scene = Devices().asks({GPU: 1})
    assert (scene.pending.reason, scene.pending.message) == (
        "unregistered_resource",
        f"waiting for a device plugin that registers {GPU}",
    )
    assert scene.due is None
    # Who asks again hears it again.
    assert scene.asks({GPU: 1}).pending.reason == "unregistered_resource"
    scene.registers()
    assert (scene.pending.reason, scene.pending.message) == (
        "no_healthy_devices",
        f"waiting for a healthy device of {GPU}",
    )
    assert scene.lists("a").only(devices.DevicesChosen).devices == ("a",)


def test_not_yet_after_a_restart() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 1}).allocates()
    scene.when(signals.RegistryOpened())
    assert scene.asks({GPU: 1}, uid="u2").pending.reason == "no_healthy_devices"
    # A container that is started anew waits for what it holds.
    assert scene.asks({GPU: 1}).pending.message == f"waiting for a healthy device of {GPU}"
    scene.registers().lists("b")
    assert scene.claim().message == f"waiting for its devices of {GPU} to be healthy again: a"
    assert scene.has("u2") == {GPU: ("b",)}
    scene.lists("a", "b")
    assert scene.only(devices.DevicesAllocated).uid == "u1"
    assert scene.claim().phase == "granted"


def test_the_kubelet_does_not_wait() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).allocates()
    scene.when(signals.RegistryOpened())
    refused = scene.asks({GPU: 1}, uid="u2").only(devices.DevicesRefused)
    assert refused.message == f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    scene.registers().lists("b")
    refused = scene.asks({GPU: 1}).only(devices.DevicesRefused)
    assert refused.reason == "recorded_devices_unhealthy"
    assert not scene.now.claims
    assert not scene.now.used


def test_the_kubelet_knows_nothing_of_what_no_plugin_spoke_of() -> None:
    scene = Devices(STRICT).asks({NIC: 1})
    assert scene.only(devices.DevicesAllocated).allocations() == {}
    scene.plugged("a").asks({GPU: 1, NIC: 1}, uid="u2")
    done = scene.allocates("u2").only(devices.DevicesAllocated)
    assert (done.complete, sorted(done.allocations())) == (True, [GPU])


def test_what_is_held_of_a_forgotten_resource_is_known() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).allocates().stops()
    scene.wake()
    assert scene.asks({GPU: 1}, uid="u2").only(devices.DevicesRefused).message == (
        f"cannot allocate unregistered device {GPU}"
    )


def test_a_wish_for_none() -> None:
    scene = Devices().plugged("a").asks({GPU: 0})
    assert scene.only(devices.DevicesAllocated).allocations() == {}
    assert scene.stops().asks({GPU: 0}, uid="u2").pending.reason == "no_healthy_devices"


def test_a_changed_wish_is_refused_and_changes_nothing() -> None:
    scene = Devices().plugged("a", "b", "c").asks({GPU: 2}).allocates()
    refused = scene.asks({GPU: 3}).only(devices.DevicesRefused)
    assert refused.message == f'pod "u1" container "app" changed request for resource "{GPU}" from 2 to 3'
    assert scene.has() == {GPU: ("a", "b")}
    assert scene.asks({}).only(devices.DevicesRefused).message.endswith("from 2 to 0")
    scene.releases("app").asks({GPU: 3})
    assert scene.allocate.devices == ("a", "b", "c")


def test_init_containers_leave_their_devices() -> None:
    scene = Devices().plugged("a", "b", "c", "d")
    scene.asks({GPU: 3}, container="i1", role="init").asks({GPU: 1}, container="s1", role="sidecar")
    assert scene.pending.message == "waiting for earlier containers of the pod"
    scene.asks({GPU: 2}, container="i2", role="init").asks({GPU: 2})
    for name in ("i1", "s1", "i2", "app"):
        scene.allocates(container=name)
    assert [scene.has(container=name)[GPU] for name in ("i1", "s1", "i2", "app")] == [
        ("a", "b", "c"),
        ("a",),
        ("b", "c"),
        ("b", "c"),
    ]
    assert scene.now.used[GPU]["b"] == ("u1/i1", "u1/i2", "u1/app")
    assert scene.asks({GPU: 2}, uid="u2").only(devices.DevicesRefused).message.endswith("Requested: 2, Available: 1")
    scene.releases("i1", "i2")
    assert scene.now.used[GPU]["b"] == ("u1/app",)
    assert sorted(scene.now.used[GPU]) == ["a", "b", "c"]


def test_a_release_wins_over_what_is_under_way() -> None:
    scene = Devices().plugged("a").asks({GPU: 1})
    answer = scene.about()
    scene.ends()
    scene.then(devices.DevicesFreed(pod="default/u1", uid="u1", devices={"app": {GPU: ("a",)}}, reason="PodEnded"))
    assert "claim/u1/app" not in scene.effects
    late = signals.AllocateSaid(**answer, answers=(devices.Answer(),))  # type: ignore[arg-type]
    assert scene.when(late).events == ()
    # Nor is the late answer taken for one to the next question of the same container.
    scene.asks({GPU: 1})
    assert scene.when(late).events == ()
    assert scene.allocates().kinds == ["DevicesAllocated"]


def test_a_release_of_nothing() -> None:
    scene = Devices()
    assert scene.ends().events == ()
    assert scene.releases("app").events == ()


def test_a_release_is_news_for_who_waits() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).asks({GPU: 1}, uid="u2")
    scene.ends()
    assert scene.only(devices.DevicesChosen).uid == "u2"
    scene.asks({NIC: 1}, uid="u3")
    assert scene.ends("u3").only(devices.DevicesFreed).devices == {"app": {}}


def test_a_plugin_that_is_gone_while_it_allocates() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).refuses("rpc error: code = Unavailable", away=True)
    assert (scene.pending.reason, scene.pending.retry_at) == ("plugin_away", 11_000)
    assert scene.has() == {}
    assert scene.asks({GPU: 1}).pending.retry_at == 11_000
    scene.registers().lists("a")
    assert scene.allocate.devices == ("a",)
    scene.refuses(away=True)
    assert scene.due == 11_000
    scene.wake()
    assert scene.kinds == ["DevicesChosen"]


def test_a_plugin_that_is_gone_is_an_error_for_the_kubelet() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).refuses("rpc error: code = Unavailable", away=True)
    assert scene.only(devices.DevicesRefused).reason == "plugin_error"


def test_a_plugin_that_stopped_is_asked_when_it_is_back() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).stops()
    assert scene.allocate.socket == ""
    scene.refuses(away=True)
    scene.wake()
    assert (scene.pending.reason, scene.pending.retry_at) == ("no_healthy_devices", 0)


def answers(scene: Devices, *names: str) -> Devices:
    """The plugin answers for so many containers."""
    said = tuple(devices.Answer(envs={"NAME": name}) for name in names)
    scene.when(signals.AllocateSaid(**scene.about(), answers=said))  # type: ignore[arg-type]
    return scene


def test_an_answer_for_no_container_is_an_error_in_the_kubelets_words() -> None:
    scene = answers(Devices().plugged("a").asks({GPU: 1}))
    empty = "&AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}"
    words = f"no containers return in allocation response {empty}"
    assert scene.only(devices.DevicesRefused).message == words
    assert not scene.now.used


def test_of_answers_for_several_containers_the_first_counts() -> None:
    scene = answers(Devices().plugged("a").asks({GPU: 1}), "first", "second")
    assert scene.only(devices.DevicesAllocated).allocations()[GPU].answer.envs == {"NAME": "first"}
    words = (
        f"Device plugin of {GPU} answered Allocate for 2 containers, expected 1: "
        "the first response is used for container app of default/u1"
    )
    assert scene.reasons_and_texts == (("DeviceAllocationTrimmed", words),)
    assert scene.recorded[0].severity == "Warning"


@pytest.mark.parametrize(
    ("timed_out", "message"),
    [(False, "OSError: x"), (True, "rpc error: code = DeadlineExceeded desc = context deadline exceeded")],
)
def test_a_worker_that_fails_or_takes_too_long(timed_out: bool, message: str) -> None:
    scene = Devices().plugged("a").asks({GPU: 1})
    failed = EffectFailed(effect="Allocate", **scene.about(), error="OSError: x", timed_out=timed_out)  # type: ignore[arg-type]
    assert scene.when(failed).only(devices.DevicesRefused).message == message


def test_other_workers_that_fail() -> None:
    scene = Devices().registers(by="watcher")
    failed = EffectFailed(effect="AskOptions", subject=f"options/{GPU}", intent="options/1", error="x")
    assert scene.when(failed).only(devices.PluginOptionsKnown).error == "x"
    offering(scene.lists("a", "b")).asks({GPU: 1})
    failed = EffectFailed(effect="Prefer", **scene.about(), error="x")  # type: ignore[arg-type]
    assert "GetPreferredAllocation rpc failed with err: x" in scene.when(failed).only(devices.DevicesRefused).message


# -- preference ----------------------------------------------------------------------------------------------------
def offering(scene: Devices) -> Devices:
    """Its plugin wants to be asked which devices it would give."""
    listed = [name for name, _ in sorted(scene.now.resources[GPU].devices.items())]
    return scene.registers(options=devices.PluginOptions(preferred_allocation=True)).lists(*listed)


def test_what_a_plugin_prefers_is_taken() -> None:
    scene = offering(Devices().plugged("a", "b", "c")).asks({GPU: 2})
    assert scene.question() == wanted.Prefer(
        subject="claim/u1/app",
        intent="preferring/3",
        resource=GPU,
        socket=f"{FOLDER}/gpu.sock",
        available=("a", "b", "c"),
        must_include=(),
        size=2,
    )
    # Nobody else chooses meanwhile.
    assert scene.asks({GPU: 1}, uid="u2").pending.reason == "in_turn"
    scene.prefers("c", "nonsense", "c")
    assert scene.has() == {GPU: ("c", "a")}
    assert scene.question("u2").available == ("b",)


def test_devices_that_went_while_the_plugin_was_asked() -> None:
    scene = offering(Devices().plugged("a", "b")).asks({GPU: 2})
    scene.lists("a")
    assert scene.question().available == ("a",)
    assert scene.prefers("a", "b").only(devices.DevicesRefused).message.endswith("Requested: 2, Available: 1")


def test_a_plugin_that_went_while_it_was_asked() -> None:
    scene = offering(Devices().plugged("a")).asks({GPU: 1}).stops()
    assert scene.prefers("a").pending.reason == "plugin_away"
    scene = offering(Devices().plugged("a")).asks({GPU: 1}).stops()
    scene.wake()
    assert scene.question().socket == ""
    assert scene.question().available == ()
    assert scene.prefers("a").pending.reason == "plugin_away"
    scene = offering(Devices().plugged("a")).asks({GPU: 1})
    scene.when(signals.PreferenceSaid(**scene.about(), error="gone", away=True))  # type: ignore[arg-type]
    assert scene.pending.reason == "plugin_away"


def test_a_plugin_that_has_come_back_and_lists_nothing_yet_when_its_answer_arrives() -> None:
    """As after a restart of the agent, which asks once more before the plugin has sent its first list."""
    scene = offering(Devices().plugged("a")).asks({GPU: 1})
    scene.when(signals.RegistryOpened())
    scene.registers(options=devices.PluginOptions(preferred_allocation=True))
    assert scene.prefers("a").pending.reason == "no_healthy_devices"
    scene.lists("a")
    assert scene.question().available == ("a",)
    assert scene.prefers("a").has() == {GPU: ("a",)}


def test_devices_that_all_fell_ill_while_the_plugin_was_asked() -> None:
    scene = offering(Devices().plugged("a")).asks({GPU: 1})
    scene.lists(ill=["a"])
    assert scene.prefers("a").pending.reason == "no_healthy_devices"
    scene = offering(Devices(Policy(wait_for_resources=False)).plugged("a")).asks({GPU: 1})
    scene.lists(ill=["a"])
    assert scene.prefers("a").only(devices.DevicesRefused).reason == "no_healthy_devices"


def test_nothing_is_asked_of_a_plugin_that_has_not_said_what_it_wants() -> None:
    scene = Devices().registers(by="watcher").lists("a").asks({GPU: 1})
    assert scene.pending.reason == "options_unknown"
    scene.when(signals.OptionsSaid(subject=f"options/{GPU}", intent="options/1"))
    assert scene.has() == {GPU: ("a",)}


# -- topology ------------------------------------------------------------------------------------------------------
NEAR = Policy(topology="best-effort")


def test_devices_of_one_node_go_together() -> None:
    scene = Devices(NEAR).registers().lists("a", "b", "c", nodes={"a": 0, "b": 1, "c": 1}).asks({GPU: 2})
    assert scene.has() == {GPU: ("b", "c")}


def test_the_nodes_of_several_resources_agree() -> None:
    scene = Devices(NEAR).registers().lists("a", "b", nodes={"a": 0, "b": 1})
    scene.registers(NIC).lists("n", resource=NIC, nodes={"n": 1})
    scene.asks({GPU: 1, NIC: 1})
    assert scene.has() == {GPU: ("b",)}
    scene.allocates()
    assert scene.has() == {GPU: ("b",), NIC: ("n",)}


def test_a_plugin_is_asked_among_the_near() -> None:
    scene = Devices(NEAR).registers(options=devices.PluginOptions(preferred_allocation=True))
    scene.lists("a", "b", "c", nodes={"a": 0, "b": 1, "c": 1}).asks({GPU: 1})
    # Each node would do; the first is taken, and has no more than are needed.
    assert scene.has() == {GPU: ("a",)}
    scene.asks({GPU: 1}, uid="u2")
    assert scene.only(devices.PreferenceAsked).near == (1,)
    assert scene.question("u2").available == ("b", "c")
    assert scene.prefers("c", uid="u2").has("u2") == {GPU: ("c",)}


def test_what_an_init_container_left_says_where_its_pod_is() -> None:
    nodes = {"a": 0, "b": 0, "c": 1, "d": 1}
    scene = Devices(NEAR).registers().lists("c", "d", nodes=nodes)
    scene.asks({GPU: 1}, container="i", role="init").allocates(container="i")
    scene.lists("a", "b", "c", "d", nodes=nodes).asks({GPU: 2})
    assert scene.has() == {GPU: ("c", "d")}


def test_without_nodes_there_is_nothing_to_be_near_to() -> None:
    assert Devices(NEAR).plugged("a").asks({GPU: 1}).has() == {GPU: ("a",)}
    assert Devices(NEAR).plugged("a").asks({GPU: 1, NIC: 1}).has() == {GPU: ("a",)}


# -- adoption ------------------------------------------------------------------------------------------------------
def test_what_ran_before_the_log_keeps_its_devices() -> None:
    scene = Devices().asks({GPU: 1}, held={GPU: ("b",)})
    assert scene.kinds == ["DevicesAdopted", "DevicesPending"]
    assert (scene.pending.reason, scene.has()) == ("plugin_away", {GPU: ("b",)})
    scene.plugged("a", "b")
    assert scene.allocate.devices == ("b",)
    assert scene.asks({GPU: 2}, uid="u2").pending.reason == "in_turn"
    # It runs: whatever the plugin says, it is not refused.
    scene.refuses("no")
    assert (scene.claim().reason, scene.has()) == ("plugin_away", {GPU: ("b",)})
    scene.at = 11_000
    scene.wake().allocates()
    assert scene.claim().phase == "granted"
    assert scene.claim().adopted == {}
    assert scene.has() == {GPU: ("b",)}


def test_nobody_is_said_to_have_what_another_has() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 1}).allocates()
    scene.asks({GPU: 1}, uid="u2", held={GPU: ("a",), NIC: ("n",)})
    assert scene.only(devices.DevicesAdopted).devices == {}
    assert scene.has("u2") == {GPU: ("b",)}


def test_adopted_devices_of_several_resources() -> None:
    scene = Devices().asks({GPU: 1, NIC: 1}, held={GPU: ("a",), NIC: ("n",)})
    scene.plugged("a").plugged("n", resource=NIC)
    scene.allocates()
    assert scene.has() == {GPU: ("a",), NIC: ("n",)}
    scene.allocates()
    assert scene.claim().phase == "granted"


# -- before a start ------------------------------------------------------------------------------------------------
def telling(scene: Devices) -> Devices:
    """A container whose plugin wants to be told of each start."""
    scene.registers(options=devices.PluginOptions(pre_start_required=True)).lists("a", "b")
    return scene.asks({GPU: 1}).allocates()


def started(scene: Devices, error: str = "") -> Devices:
    told = scene.effects["start/u1/app"]
    scene.when(signals.PreStartSaid(subject=told.subject, intent=told.intent, error=error))
    return scene


def test_plugins_are_told_of_a_start() -> None:
    scene = telling(Devices())
    assert scene.only(devices.DevicesAllocated).allocations()[GPU].pre_start
    scene.starts(0)
    scene.then(devices.PreStartAsked(pod="default/u1", uid="u1", container="app", attempt=0))
    told = scene.effects["start/u1/app"]
    assert isinstance(told, wanted.PreStart)
    assert told.calls == (wanted.PreStartCall(resource=GPU, socket=f"{FOLDER}/gpu.sock", devices=("a",)),)
    assert scene.starts(0).events == ()
    assert started(scene).kinds == ["PreStartDone"]
    assert scene.now.open == ()
    assert scene.starts(1).kinds == ["PreStartAsked"]
    assert scene.when(signals.PreStartSaid(subject=told.subject, intent=told.intent)).events == ()
    started(scene, "no")
    assert scene.only(devices.PreStartFailed).message == "device plugin PreStartContainer rpc failed with err: no"
    assert scene.now.open == ()


def test_a_start_that_no_plugin_wants_to_hear_of() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).allocates()
    assert scene.starts(0).kinds == ["PreStartDone"]
    assert scene.starts(0, "u9").events == ()


def test_a_start_without_the_plugin() -> None:
    scene = telling(Devices()).stops().starts(0)
    said = f"endpoint not found in cache for a registered resource: {GPU}"
    assert scene.only(devices.PreStartFailed).message == said
    scene.wake()
    assert scene.starts(0).only(devices.PreStartFailed).message == said


def test_a_worker_that_fails_before_a_start() -> None:
    scene = telling(Devices()).starts(0)
    told = scene.effects["start/u1/app"]
    failed = EffectFailed(effect="PreStart", subject=told.subject, intent=told.intent, error="x")
    assert scene.when(failed).kinds == ["PreStartFailed"]
    wrong = signals.PreStartSaid(subject="start/u1/other", intent=told.intent)
    scene.starts(1).asks({NIC: 1}, uid="u2")
    intent = scene.effects["start/u1/app"].intent
    assert scene.when(signals.PreStartSaid(subject=wrong.subject, intent=intent)).events == ()


# -- holders and pods ----------------------------------------------------------------------------------------------
def test_holders_are_compared_with_the_pods_that_live() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 1}).allocates().asks({GPU: 1}, uid="u2")
    assert isinstance(scene.effects["pods"], wanted.ListPods)
    assert scene.when(signals.PodsLiving(as_of=2_000, uids=("u1", "u2"))).events == ()
    assert scene.when(signals.PodsLiving(as_of=1_000, uids=())).events == ()  # they are not older than the reading
    scene.when(signals.PodsLiving(as_of=2_000, uids=("u2",)))
    freed = scene.only(devices.DevicesFreed)
    assert (freed.uid, freed.reason, freed.devices) == ("u1", "PodGone", {"app": {GPU: ("a",)}})
    scene.ends("u2")
    assert "pods" not in scene.effects


def test_events_about_claims_that_are_gone_change_nothing() -> None:
    scene = Devices()
    who = {"pod": "default/u1", "uid": "u1", "container": "app"}
    for event in (
        devices.DevicesAllocated(**who),  # type: ignore[arg-type]
        devices.DevicesRefused(**who, resource=GPU, reason="x", message="x"),
        devices.PreStartDone(**who, attempt=0),  # type: ignore[arg-type]
        devices.DevicesFreed(pod="default/u1", uid="u1", devices={"app": {}}, reason="Released"),
        pod.PodEnded(pod="default/u1", uid="u1"),
    ):
        assert scene.decider.evolve(scene.state, event) == scene.state
