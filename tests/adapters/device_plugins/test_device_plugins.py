"""Plugins over real sockets: how they register, list, answer, and what they do to a node that deserves better."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import socket as sockets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from chronolet.adapters.device_plugins import wire
from chronolet.adapters.device_plugins.patience import Patience
from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.sockets import unix_sockets
from chronolet.ports.devices.plugins import Following, Listing, PluginRefusal, Registering
from chronolet_schemas.devices import HEALTHY, UNHEALTHY, DeviceInfo, DeviceNode, Mount, PluginOptions
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as found
from tests.support import scratch
from tests.support.devices.old_plugin import old_plugin
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.scratch import HANG_SECONDS

RESOURCE = "example.com/thing"
SOCKETS = unix_sockets.Timing(check_seconds=0.05, grace_seconds=0.05, alive_seconds=HANG_SECONDS)
"""`check_seconds` is how long it takes to notice the stop."""
SHORT = Patience(connect=1, allocate=0.5, introduce=HANG_SECONDS, sockets=SOCKETS)
PATIENT = Patience(
    connect=HANG_SECONDS,
    options=HANG_SECONDS,
    preferred=HANG_SECONDS,
    allocate=HANG_SECONDS,
    pre_start=HANG_SECONDS,
    introduce=HANG_SECONDS,
    sockets=SOCKETS,
)


@dataclass
class Desk:
    """Where plugins register: it notes them, and refuses with what `problem` says."""

    plugins: GrpcDevicePlugins
    folder: Path
    watched: Path
    problem: Callable[[Registering], str] = lambda _: ""
    noticed: Callable[[], None] = lambda: None
    opened: int = 0
    left: list[str] = field(default_factory=list)
    failed: list[PluginRefusal] = field(default_factory=list)
    """Why the latest work ended before it was to."""
    registered: queue.SimpleQueue[Registering] = field(default_factory=queue.SimpleQueue)

    def register(self, asked: Registering) -> str:
        self.registered.put(asked)
        return self.problem(asked)

    def next(self) -> Registering:
        return self.registered.get(timeout=HANG_SECONDS)

    def _opened(self) -> None:
        self.noticed()
        self.opened += 1

    @contextmanager
    def at_work(self, *, watching: bool = False) -> Iterator[None]:
        """Serving the registration socket, or watching the folder."""
        stop, failed = threading.Event(), list[PluginRefusal]()
        self.failed = failed

        def work() -> None:
            try:
                if watching:
                    self.plugins.watch(self.register, self.left.append, stop)
                else:
                    self.plugins.serve(self.register, self._opened, stop)
            except PluginRefusal as refusal:
                failed.append(refusal)

        before = self.opened
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            scratch.wait_until(lambda: watching or self.opened > before or bool(failed), "the registration socket")
            if failed:
                raise failed[0]
            yield
        finally:
            stop.set()
            thread.join(HANG_SECONDS)
            assert not thread.is_alive()


@pytest.fixture
def desk() -> Iterator[Desk]:
    root = scratch.create("devices")
    folder, watched = root / "device-plugins", root / "plugins_registry"
    yield Desk(GrpcDevicePlugins(folder, watched, PATIENT), folder, watched)
    shutil.rmtree(root)


@pytest.fixture
def hasty(desk: Desk) -> Desk:
    """The same desk for whoever waits until it has waited long enough."""
    return Desk(GrpcDevicePlugins(desk.folder, desk.watched, SHORT), desk.folder, desk.watched)


@contextmanager
def listing(desk: Desk, path: str) -> Iterator[queue.SimpleQueue[Listing | PluginRefusal]]:
    """What a plugin lists, and at the end why it ended."""
    said, failed = queue.SimpleQueue[Listing | PluginRefusal](), list[BaseException]()
    stop = desk.plugins.follow(path, Following(said.put, said.put, failed.append))
    try:
        yield said
    finally:
        stop()
        assert not failed


def listed(said: queue.SimpleQueue[Listing | PluginRefusal]) -> dict[str, str]:
    news = said.get(timeout=HANG_SECONDS)
    assert isinstance(news, Listing), news
    return {one.id: one.health for one in news.devices}


def ended(said: queue.SimpleQueue[Listing | PluginRefusal]) -> PluginRefusal:
    """Why a stream ended, whatever it listed before."""
    while isinstance(news := said.get(timeout=HANG_SECONDS), Listing):
        pass
    return news


# -- registration ------------------------------------------------------------------------------------------------------


def test_a_plugin_registers_with_what_it_wants_to_be_asked(desk: Desk) -> None:
    with desk.at_work(), sample_plugin("--preferred", folder=desk.folder) as plugin:
        assert desk.next() == Registering(
            by="registration",
            resource=RESOURCE,
            versions=("v1beta1",),
            endpoint="example_com_thing.sock",
            folder=str(desk.folder),
            options=PluginOptions(preferred_allocation=True),
        )
        plugin.wait_for("registered")


def test_a_plugin_of_the_first_days_says_nothing_of_options(desk: Desk) -> None:
    with desk.at_work(), sample_plugin("--no-options", folder=desk.folder):
        assert desk.next().options is None
        with pytest.raises(PluginRefusal, match="code = Unimplemented"):
            desk.plugins.options(str(desk.folder / "example_com_thing.sock"))


def test_a_plugin_of_the_first_days_works_as_it_is(desk: Desk) -> None:
    (_made(desk.folder) / "DEPRECATION").touch()
    with old_plugin(desk.folder, RESOURCE) as old:
        old.wait_for("serves")
        for times in (1, 2):
            with desk.at_work():
                assert desk.next() == Registering(
                    by="registration",
                    resource=RESOURCE,
                    versions=("v1beta1",),
                    endpoint="old.sock",
                    folder=str(desk.folder),
                )
                old.wait_for("registered", times)
                old.wait_for("sees it created", times)
                path = str(desk.folder / "old.sock")
                with listing(desk, path) as said:
                    assert listed(said) == {"one": HEALTHY, "two": HEALTHY}
                for ask in (desk.plugins.options, lambda path: desk.plugins.preferred(path, ["one"], [], 1)):
                    with pytest.raises(PluginRefusal, match="code = Unimplemented"):
                        ask(path)
                with pytest.raises(PluginRefusal, match="code = Unimplemented"):
                    desk.plugins.pre_start(path, ["one"])
                (answer,) = desk.plugins.allocate(path, ["two"])
                assert answer.envs == {"OLD": "two"}
                assert answer.devices[0].permissions == "rw"


def test_nobody_registers_at_a_socket_before_it_is_said_to_be_open(desk: Desk) -> None:
    early: list[Registering] = []

    def noticed() -> None:
        with contextlib.suppress(queue.Empty):
            early.append(desk.registered.get(timeout=0.5))

    desk.noticed = noticed
    with old_plugin(_made(desk.folder), RESOURCE) as old:
        old.wait_for("serves")
        with desk.at_work():
            assert desk.next().endpoint == "old.sock"
    assert not early


def test_a_refused_plugin_hears_why(desk: Desk) -> None:
    desk.problem = lambda asked: f"no {asked.resource} here"
    with desk.at_work(), sample_plugin(folder=desk.folder) as plugin:
        assert plugin.end() == 1
        plugin.wait_for("refused: no example.com/thing here")


def test_one_process_registers_several_resources(desk: Desk) -> None:
    with desk.at_work(), sample_plugin("--resource", "a.test/x", "--resource", "a.test/y", folder=desk.folder):
        found = {one.resource: one.endpoint for one in (desk.next(), desk.next())}
        assert found == {"a.test/x": "a_test_x.sock", "a.test/y": "a_test_y.sock"}


def test_a_start_removes_the_sockets_that_lie_there_and_nothing_else(desk: Desk) -> None:
    desk.folder.mkdir()
    for name in ("kubelet.sock", "old.sock"):
        sockets.socket(sockets.AF_UNIX).bind(str(desk.folder / name))
    (desk.folder / "DEPRECATION").write_text("use the other folder")
    (desk.folder / "kubelet_internal_checkpoint").write_text("{}")
    (desk.folder / "sub").mkdir()
    with desk.at_work():
        assert sorted(one.name for one in desk.folder.iterdir()) == [
            "kubelet.sock",
            "kubelet_internal_checkpoint",
            "sub",
        ]
        assert stat.S_ISSOCK((desk.folder / "kubelet.sock").stat().st_mode)


def test_plugins_register_again_when_the_socket_is_made_anew(desk: Desk) -> None:
    with sample_plugin(folder=_made(desk.folder)) as plugin:
        with desk.at_work():
            desk.next()
            plugin.wait_for("registered")  # its answer is on its way before the socket goes
        with desk.at_work():
            desk.next()
            plugin.wait_for("registered", times=2)
        assert desk.opened == 2


def test_a_registration_socket_that_somebody_removes_is_made_anew(desk: Desk) -> None:
    with desk.at_work(), sample_plugin(folder=desk.folder) as plugin:
        desk.next()
        plugin.wait_for("registered")
        path = desk.folder / "example_com_thing.sock"
        before = unix_sockets.identity(path)
        (desk.folder / "kubelet.sock").unlink()
        desk.next()
        plugin.wait_for("registered", times=2)
        assert desk.opened == 2
        # Many plugins watch their own socket only: it is removed so that they register again.
        assert unix_sockets.identity(path) not in (None, before)


def test_plugins_are_answered_again_after_somebody_removed_the_socket_behind(desk: Desk) -> None:
    with sample_plugin(folder=_made(desk.folder)):
        with desk.at_work():
            desk.next()
            (desk.folder / ".grpc").unlink()
            with sockets.socket(sockets.AF_UNIX) as client:
                client.settimeout(HANG_SECONDS)
                client.connect(str(desk.folder / "kubelet.sock"))
                assert client.recv(1) == b""
            scratch.wait_until(lambda: bool(desk.failed), "the failure of the worker")
        assert "kubelet.sock: cannot serve connections" in str(desk.failed[0])
        with desk.at_work():
            assert desk.next().resource == RESOURCE


def test_the_sockets_of_plugins_are_removed_whenever_the_registration_socket_is_made(desk: Desk) -> None:
    with desk.at_work():
        left = desk.folder / "plugin.sock"
        with sockets.socket(sockets.AF_UNIX) as plugin:
            plugin.bind(str(left))
            (desk.folder / "kubelet.sock").unlink()
            scratch.wait_until(lambda: desk.opened == 2, "the new registration socket")
            assert not left.exists()


def test_a_plugin_in_a_container_names_the_watched_folder_as_it_sees_it() -> None:
    folder, socket = "/srv/kubelet/plugins_registry", "/srv/kubelet/plugins_registry/gpu.sock"

    def endpoint(named: str) -> str:
        info = found.PluginInfo(type="DevicePlugin", name=RESOURCE, endpoint=named, supported_versions=["v1beta1"])
        return wire.found_registering(info, socket, folder).endpoint

    assert endpoint("") == endpoint("/var/lib/kubelet/plugins_registry/gpu.sock") == endpoint(socket) == socket
    assert endpoint("/elsewhere/other.sock") == "/elsewhere/other.sock"
    assert endpoint("other.sock") == "other.sock"


def test_a_numa_node_of_minus_one_is_none() -> None:
    device = api.Device(ID="a", health=HEALTHY)
    for node in (-1, 0):
        device.topology.nodes.add(ID=node)
    assert wire.devices(api.ListAndWatchResponse(devices=[device]))[0].nodes == (0,)


def test_a_registration_socket_that_a_living_process_serves_is_left_alone(desk: Desk) -> None:
    other = Desk(GrpcDevicePlugins(desk.folder, desk.watched, PATIENT), desk.folder, desk.watched)
    with desk.at_work():
        with pytest.raises(PluginRefusal, match="another process serves it"), other.at_work():
            pass
        with sample_plugin(folder=desk.folder):
            desk.next()


def test_a_registration_socket_whose_process_answers_late_is_left_alone(desk: Desk) -> None:
    """A process that has no CPU for a while answers a second later, with the settings that HTTP/2 begins with."""
    assert unix_sockets.DEFAULT_TIMING.alive_seconds > 1
    desk.folder.mkdir()

    def answer_late() -> None:
        client, _ = alive.accept()
        with client:
            time.sleep(1)
            client.sendall(b"\0\0\0\4\0\0\0\0\0")
            done.wait(HANG_SECONDS)

    done = threading.Event()
    with sockets.socket(sockets.AF_UNIX) as alive, ThreadPoolExecutor() as pool:
        alive.bind(str(desk.folder / "kubelet.sock"))
        alive.listen(1)
        # The first connection asks only whether anybody listens.
        pool.submit(alive.accept).add_done_callback(lambda _: answer_late())
        try:
            with pytest.raises(PluginRefusal, match="another process serves it"), desk.at_work():
                pass
        finally:
            done.set()


def test_a_folder_that_cannot_be_made_is_named(desk: Desk) -> None:
    desk.folder.write_text("a file")
    with pytest.raises(PluginRefusal, match=f"{desk.folder}: File exists"), desk.at_work():
        pass


def test_what_is_no_registration_harms_nobody(desk: Desk) -> None:
    with desk.at_work(), sample_plugin(folder=desk.folder):
        desk.next()
        for noise in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b""):
            with sockets.socket(sockets.AF_UNIX) as stranger:
                stranger.connect(str(desk.folder / "kubelet.sock"))
                stranger.sendall(noise)
        with grpc.insecure_channel(f"unix:{desk.folder}/kubelet.sock") as channel:
            raw = channel.unary_unary("/v1beta1.Registration/Register")
            with pytest.raises(grpc.RpcError):
                raw(b"\xff\xff no message", timeout=HANG_SECONDS)
            raw(api.RegisterRequest(resource_name="x.test/y").SerializeToString(), timeout=HANG_SECONDS)
        assert desk.next().resource == "x.test/y"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


# -- the watched folder ------------------------------------------------------------------------------------------------


def test_a_plugin_is_found_by_its_socket_and_missed_when_it_goes(desk: Desk) -> None:
    with desk.at_work(watching=True):
        scratch.wait_until(desk.watched.is_dir, "the folder")
        with sample_plugin("--watched", folder=desk.watched) as plugin:
            path = str(desk.watched / "example_com_thing.sock")
            assert desk.next() == Registering(
                by="watcher", resource=RESOURCE, versions=("v1beta1",), endpoint=path, folder=str(desk.watched)
            )
            plugin.wait_for("registered")
            plugin.do("stop")
            assert plugin.end() == 0
        scratch.wait_until(lambda: desk.left == [path], "that it is missed")


def test_a_plugin_that_is_found_and_refused_hears_why(desk: Desk) -> None:
    desk.problem = lambda _: "not you"
    with desk.at_work(watching=True):
        scratch.wait_until(desk.watched.is_dir, "the folder")
        with sample_plugin("--watched", folder=desk.watched) as plugin:
            plugin.wait_for("refused: not you")
    assert desk.left == []


def test_a_plugin_that_comes_back_at_the_same_path_registers_again(desk: Desk) -> None:
    with desk.at_work(watching=True):
        scratch.wait_until(desk.watched.is_dir, "the folder")
        for _ in range(2):
            with sample_plugin("--watched", folder=desk.watched) as plugin:
                assert desk.next().endpoint == str(desk.watched / "example_com_thing.sock")
                plugin.wait_for("registered")


def test_hidden_and_dead_sockets_are_no_plugins_and_deeper_ones_are(desk: Desk) -> None:
    deep = desk.watched / "vendor"
    deep.mkdir(parents=True)
    for path in (desk.watched / ".hidden.sock", desk.watched / "dead.sock"):
        sockets.socket(sockets.AF_UNIX).bind(str(path))
    with desk.at_work(watching=True), sample_plugin("--watched", folder=deep):
        assert desk.next().endpoint == str(deep / "example_com_thing.sock")
    assert desk.registered.empty()


# -- lists -------------------------------------------------------------------------------------------------------------


def test_devices_are_listed_and_each_change_of_them(desk: Desk) -> None:
    with sample_plugin("--devices", "2", "--numa", "2", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            first = said.get(timeout=HANG_SECONDS)
            assert first == Listing(
                devices=(
                    DeviceInfo(id="thing-0", health=HEALTHY, nodes=(0,)),
                    DeviceInfo(id="thing-1", health=HEALTHY, nodes=(1,)),
                )
            )
            plugin.do("unhealthy thing-1")
            assert listed(said) == {"thing-0": HEALTHY, "thing-1": UNHEALTHY}
            plugin.do("healthy thing-1 thing-2")
            assert listed(said) == {"thing-0": HEALTHY, "thing-1": HEALTHY, "thing-2": HEALTHY}
            plugin.do("remove thing-0")
            assert listed(said) == {"thing-1": HEALTHY, "thing-2": HEALTHY}
            plugin.kill()
            assert ended(said).kind == "away"


def test_ten_thousand_devices_are_listed(desk: Desk) -> None:
    with sample_plugin("--devices", "10000", "--prefix", "d" * 40, folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            assert len(listed(said)) == 10_000


def test_an_id_that_is_listed_twice_is_handed_on_twice(desk: Desk) -> None:
    with sample_plugin("--first-twice", "--devices", "2", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            news = said.get(timeout=HANG_SECONDS)
            assert isinstance(news, Listing)
            assert [one.id for one in news.devices] == ["thing-0", "thing-0", "thing-1"]


def test_a_flood_is_told_by_its_latest_lists_and_counted(desk: Desk) -> None:
    with sample_plugin("--devices", "50", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            listed(said)
            plugin.do("flood 20000")
            told: list[Listing] = []
            # A list of the flood may tell of the flip already.
            while sum(one.skipped + 1 for one in told) < 20_002:
                news = said.get(timeout=HANG_SECONDS)
                assert isinstance(news, Listing)
                if not told:
                    plugin.do("unhealthy thing-7")  # the flood has begun: the flip gets a list of its own
                told.append(news)
            assert len(told) < 20_002 / 10, "most of them were skipped"
            assert sum(one.skipped + 1 for one in told) == 20_002
            assert "Unhealthy" in {one.health for one in told[-1].devices}


def test_a_plugin_that_does_not_listen_yet_is_waited_for(desk: Desk) -> None:
    folder = _made(desk.folder)
    with listing(desk, str(folder / "example_com_thing.sock")) as said, sample_plugin(folder=folder):
        assert len(listed(said)) == 4


def test_a_plugin_that_never_listens_is_given_up(hasty: Desk) -> None:
    with listing(hasty, str(hasty.folder / "nobody.sock")) as said:
        refusal = ended(said)
        assert refusal.kind == "late"
        assert "no answer within 1 s" in str(refusal)


@pytest.mark.parametrize("what", ["FIFO", "file", "folder", "socket that nobody serves"])
def test_a_path_that_is_no_plugins_socket_is_given_up(hasty: Desk, what: str) -> None:
    path = _made(hasty.folder) / "odd.sock"
    if what == "FIFO":
        os.mkfifo(path)
    elif what == "file":
        path.write_text("no socket")
    elif what == "folder":
        path.mkdir()
    else:
        sockets.socket(sockets.AF_UNIX).bind(str(path))
    with listing(hasty, str(path)) as said:
        assert "no answer within 1 s" in str(ended(said))
    with pytest.raises(PluginRefusal):
        hasty.plugins.allocate(str(path), ["thing-0"])


def test_a_silent_plugin_can_be_left(desk: Desk) -> None:
    with sample_plugin("--do", "hang list", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            plugin.wait_for("list")
        assert said.empty()


def test_the_streams_of_all_plugins_share_a_thread(desk: Desk) -> None:
    names = [f"a.test/r{number}" for number in range(40)]
    words = [word for name in names for word in ("--resource", name)]
    with sample_plugin(*words, "--devices", "1", folder=_made(desk.folder)) as plugin, contextlib.ExitStack() as stack:
        plugin.wait_for("serves", times=len(names))
        paths = [str(desk.folder / f"a_test_r{number}.sock") for number in range(len(names))]
        with listing(desk, paths[0]) as said:
            assert len(listed(said)) == 1
            before = len(list(Path("/proc/self/task").iterdir()))
            for path in paths[1:]:
                assert len(listed(stack.enter_context(listing(desk, path)))) == 1
            # A few of gRPC's own come and go, but none for each plugin.
            assert len(list(Path("/proc/self/task").iterdir())) < before + len(names) // 2


def test_a_stream_waits_until_it_may_begin(desk: Desk) -> None:
    said, answers = queue.SimpleQueue[Listing | PluginRefusal](), iter((False, True))
    with sample_plugin(folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        stop = desk.plugins.follow(path, Following(said.put, said.put, said.put, lambda: next(answers)))
        assert len(listed(said)) == 4
        stop()
        plugin.wait_for("list is over")


def test_an_error_in_a_callback_is_reported_and_harms_no_other_stream(desk: Desk) -> None:
    failed = queue.SimpleQueue[BaseException]()

    def fails(_: Listing) -> None:
        raise ArithmeticError("odd")

    with sample_plugin(folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        desk.plugins.follow(path, Following(fails, lambda _: None, failed.put))
        assert isinstance(failed.get(timeout=HANG_SECONDS), ArithmeticError)
        with listing(desk, path) as said:
            assert len(listed(said)) == 4


# -- answers -----------------------------------------------------------------------------------------------------------


def test_what_a_container_gets_is_told_in_full(desk: Desk) -> None:
    options = ["--device-node", "/dev/fuse:/dev/f:r", "--mount", "/etc:/mnt/etc:ro", "--env", "A=1"]
    options += ["--annotation", "k=v", "--cdi", "example.com/thing={id}"]
    with sample_plugin(*options, folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        (answer,) = desk.plugins.allocate(path, ["thing-1", "thing-0"])
        assert answer.envs == {"EXAMPLE_COM_THING": "thing-1,thing-0", "A": "1"}
        assert answer.devices == (DeviceNode(container_path="/dev/f", host_path="/dev/fuse", permissions="r"),)
        assert answer.mounts == (Mount(container_path="/mnt/etc", host_path="/etc", read_only=True),)
        assert answer.annotations == {"k": "v"}
        assert answer.cdi_devices == ("example.com/thing=thing-1", "example.com/thing=thing-0")
        desk.plugins.pre_start(path, ["thing-1"])
        plugin.wait_for("prestart thing-1")


def test_a_plugin_that_registered_before_it_served_is_asked_when_it_does(desk: Desk) -> None:
    path = str(_made(desk.folder) / "example_com_thing.sock")
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(desk.plugins.options, path)
        with sample_plugin("--pre-start", folder=desk.folder):
            assert asking.result(HANG_SECONDS) == PluginOptions(pre_start_required=True)
    with sample_plugin("--do", "crash options", folder=desk.folder) as plugin:
        plugin.wait_for("serves")
        with pytest.raises(PluginRefusal) as raised:
            desk.plugins.options(path)
        assert raised.value.kind == "away"


def test_a_preference_is_asked_for(desk: Desk) -> None:
    with sample_plugin("--preferred", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        assert desk.plugins.options(path) == PluginOptions(preferred_allocation=True)
        found = desk.plugins.preferred(path, ["thing-0", "thing-1", "thing-2"], ["thing-0"], 2)
        assert found == ("thing-0", "thing-2")


@pytest.mark.parametrize("count", [0, 2])
def test_too_few_and_too_many_answers_are_handed_on_as_they_are(desk: Desk, count: int) -> None:
    with sample_plugin("--do", f"answers {count}", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        assert len(desk.plugins.allocate(path, ["thing-0"])) == count


def test_a_refusal_has_the_plugins_words(desk: Desk) -> None:
    with sample_plugin("--do", "fail allocate no more", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with pytest.raises(PluginRefusal) as raised:
            desk.plugins.allocate(path, ["thing-0"])
        assert (raised.value.kind, str(raised.value)) == ("failed", "rpc error: code = Unknown desc = no more")


def test_an_answer_after_the_time_is_none(desk: Desk, hasty: Desk) -> None:
    # Not before it is told to behave well again, however long this process stands still.
    with sample_plugin("--do", "hang allocate", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with pytest.raises(PluginRefusal) as raised:
            hasty.plugins.allocate(path, ["thing-0"])
        assert raised.value.kind == "late"
        plugin.do("usual")
        assert len(desk.plugins.allocate(path, ["thing-1"])) == 1


@pytest.mark.parametrize("how", ["crash", "crash-late"])
def test_a_plugin_that_dies_in_a_call_is_away(desk: Desk, how: str) -> None:
    with sample_plugin("--do", f"{how} allocate", folder=_made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with pytest.raises(PluginRefusal) as raised:
            desk.plugins.allocate(path, ["thing-0"])
        assert raised.value.kind == "away"
        assert plugin.end() == 3
        with pytest.raises(PluginRefusal) as raised:
            desk.plugins.allocate(path, ["thing-0"])
        assert raised.value.kind == "away"
    with sample_plugin(folder=desk.folder) as plugin:
        plugin.wait_for("serves")
        assert len(desk.plugins.allocate(path, ["thing-0"])) == 1


def test_others_are_not_kept_waiting_by_one_that_hangs(desk: Desk) -> None:
    folder = _made(desk.folder)
    with (
        sample_plugin("--do", "hang allocate", "--socket", "hangs.sock", folder=folder) as hangs,
        sample_plugin("--socket", "works.sock", folder=folder) as works,
        ThreadPoolExecutor(20) as pool,
    ):
        hangs.wait_for("serves")
        works.wait_for("serves")
        hanging = [pool.submit(desk.plugins.allocate, str(folder / "hangs.sock"), ["thing-0"]) for _ in range(10)]
        try:
            hangs.wait_for("allocate", times=10)
            assert len(desk.plugins.allocate(str(folder / "works.sock"), ["thing-0"])) == 1
            assert not any(one.done() for one in hanging)
        finally:
            hangs.kill()
        assert all(isinstance(one.exception(), PluginRefusal) for one in hanging)


def test_a_path_that_is_too_long_for_a_socket_is_named(desk: Desk) -> None:
    with pytest.raises(PluginRefusal, match="exceeds the 107 bytes"):
        desk.plugins.allocate(f"/tmp/{'x' * 110}.sock", [])


def test_a_command_line_without_end_is_dropped(desk: Desk) -> None:
    with sample_plugin(folder=_made(desk.folder)) as plugin:
        plugin.write("healthy " + "x" * 200_000)
        plugin.wait_for("command dropped: longer than 65536 characters")
        plugin.do("healthy thing-7")
        assert not plugin.count("command 'xxx"), "the rest of the line is no command"
