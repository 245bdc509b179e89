"""Plugins that register through the registration socket."""

from __future__ import annotations

import contextlib
import os
import queue
import socket as sockets
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from chronolet.adapters.device_plugins import wire
from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.sockets import unix_sockets
from chronolet.ports.devices.plugins import PluginRefusal, Registering
from chronolet_schemas.devices import HEALTHY, PluginOptions
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as found
from tests.adapters.device_plugins.support import PATIENT, RESOURCE, Desk, listed, listing, made
from tests.support import scratch
from tests.support.devices.old_plugin import old_plugin
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.scratch import HANG_SECONDS


def test_a_plugin_registers_with_its_options(desk: Desk) -> None:
    with desk.serving(), sample_plugin("--preferred", folder=desk.folder) as plugin:
        assert desk.next() == Registering(
            by="registration",
            resource=RESOURCE,
            versions=("v1beta1",),
            endpoint="example_com_thing.sock",
            folder=str(desk.folder),
            options=PluginOptions(preferred_allocation=True),
        )
        plugin.wait_for("registered")


def test_an_old_plugin_has_no_options(desk: Desk) -> None:
    with desk.serving(), sample_plugin("--no-options", folder=desk.folder):
        assert desk.next().options is None
        with pytest.raises(PluginRefusal, match="code = Unimplemented"):
            desk.plugins.options(str(desk.folder / "example_com_thing.sock"))


def test_a_plugin_of_2018_works_unchanged(desk: Desk) -> None:
    (made(desk.folder) / "DEPRECATION").touch()
    with old_plugin(desk.folder, RESOURCE) as old:
        old.wait_for("serves")
        for times in (1, 2):
            with desk.serving():
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
                with listing(desk, path) as news:
                    assert listed(news) == {"one": HEALTHY, "two": HEALTHY}
                for ask in (desk.plugins.options, lambda path: desk.plugins.preferred(path, ["one"], [], 1)):
                    with pytest.raises(PluginRefusal, match="code = Unimplemented"):
                        ask(path)
                with pytest.raises(PluginRefusal, match="code = Unimplemented"):
                    desk.plugins.pre_start(path, ["one"])
                (answer,) = desk.plugins.allocate(path, ["two"])
                assert answer.envs == {"OLD": "two"}
                assert answer.devices[0].permissions == "rw"


def test_no_plugin_registers_before_the_socket_is_reported_open(desk: Desk) -> None:
    early: list[Registering] = []

    def noticed() -> None:
        with contextlib.suppress(queue.Empty):
            early.append(desk.registered.get(timeout=0.5))

    desk.noticed = noticed
    with old_plugin(made(desk.folder), RESOURCE) as old:
        old.wait_for("serves")
        with desk.serving():
            assert desk.next().endpoint == "old.sock"
    assert not early


def test_a_refused_plugin_gets_the_reason(desk: Desk) -> None:
    desk.problem = lambda asked: f"no {asked.resource} here"
    with desk.serving(), sample_plugin(folder=desk.folder) as plugin:
        assert plugin.end() == 1
        plugin.wait_for("refused: no example.com/thing here")


def test_one_process_registers_several_resources(desk: Desk) -> None:
    with desk.serving(), sample_plugin("--resource", "a.test/x", "--resource", "a.test/y", folder=desk.folder):
        found = {one.resource: one.endpoint for one in (desk.next(), desk.next())}
        assert found == {"a.test/x": "a_test_x.sock", "a.test/y": "a_test_y.sock"}


def test_a_start_removes_old_sockets_and_nothing_else(desk: Desk) -> None:
    desk.folder.mkdir()
    for name in ("kubelet.sock", "old.sock"):
        sockets.socket(sockets.AF_UNIX).bind(str(desk.folder / name))
    (desk.folder / "DEPRECATION").write_text("use the other folder")
    (desk.folder / "kubelet_internal_checkpoint").write_text("{}")
    (desk.folder / "sub").mkdir()
    with desk.serving():
        assert sorted(one.name for one in desk.folder.iterdir()) == [
            "kubelet.sock",
            "kubelet_internal_checkpoint",
            "sub",
        ]
        assert stat.S_ISSOCK((desk.folder / "kubelet.sock").stat().st_mode)


def test_plugins_register_again_when_the_socket_is_recreated(desk: Desk) -> None:
    with sample_plugin(folder=made(desk.folder)) as plugin:
        with desk.serving():
            desk.next()
            plugin.wait_for("registered")  # the response must be sent before the socket is removed
        with desk.serving():
            desk.next()
            plugin.wait_for("registered", times=2)
        assert desk.opened == 2


def test_a_removed_registration_socket_is_recreated(desk: Desk) -> None:
    with desk.serving(), sample_plugin(folder=desk.folder) as plugin:
        desk.next()
        plugin.wait_for("registered")
        path = desk.folder / "example_com_thing.sock"
        before = unix_sockets.identity(path)
        (desk.folder / "kubelet.sock").unlink()
        desk.next()
        plugin.wait_for("registered", times=2)
        assert desk.opened == 2
        # Many plugins watch only their own socket, so that is removed to make them register again.
        assert unix_sockets.identity(path) not in (None, before)


def test_after_the_inner_socket_is_removed_a_restart_serves_again(desk: Desk) -> None:
    with sample_plugin(folder=made(desk.folder)):
        with desk.serving():
            desk.next()
            (desk.folder / ".grpc").unlink()
            with sockets.socket(sockets.AF_UNIX) as client:
                client.settimeout(HANG_SECONDS)
                client.connect(str(desk.folder / "kubelet.sock"))
                assert client.recv(1) == b""
            scratch.wait_until(lambda: bool(desk.failed), "the failure of the worker")
        assert "kubelet.sock: cannot serve connections" in str(desk.failed[0])
        with desk.serving():
            assert desk.next().resource == RESOURCE


def test_the_sockets_of_plugins_are_removed_whenever_the_registration_socket_ismade(desk: Desk) -> None:
    with desk.serving():
        left = desk.folder / "plugin.sock"
        with sockets.socket(sockets.AF_UNIX) as plugin:
            plugin.bind(str(left))
            (desk.folder / "kubelet.sock").unlink()
            scratch.wait_until(lambda: desk.opened == 2, "the new registration socket")
            assert not left.exists()


def test_a_containerized_plugin_may_name_another_path_of_the_watched_folder() -> None:
    folder, socket = "/srv/kubelet/plugins_registry", "/srv/kubelet/plugins_registry/gpu.sock"

    def endpoint(named: str) -> str:
        info = found.PluginInfo(type="DevicePlugin", name=RESOURCE, endpoint=named, supported_versions=["v1beta1"])
        return wire.found_registering(info, socket, folder).endpoint

    assert endpoint("") == endpoint("/var/lib/kubelet/plugins_registry/gpu.sock") == endpoint(socket) == socket
    assert endpoint("/elsewhere/other.sock") == "/elsewhere/other.sock"
    assert endpoint("other.sock") == "other.sock"


def test_numa_node_minus_one_is_ignored() -> None:
    device = api.Device(ID="a", health=HEALTHY)
    for node in (-1, 0):
        device.topology.nodes.add(ID=node)
    assert wire.devices(api.ListAndWatchResponse(devices=[device]))[0].nodes == (0,)


def test_a_registration_socket_of_a_live_process_is_left_alone(desk: Desk) -> None:
    other = Desk(GrpcDevicePlugins(desk.folder, desk.watched, PATIENT), desk.folder, desk.watched)
    with desk.serving():
        with pytest.raises(PluginRefusal, match="another process serves it"), other.serving():
            pass
        with sample_plugin(folder=desk.folder):
            desk.next()


def test_a_registration_socket_of_a_slow_process_is_left_alone(desk: Desk) -> None:
    """A process starved of CPU replies a second later, with the settings frame with which HTTP/2 begins."""
    assert unix_sockets.DEFAULT_TIMING.alive_seconds > 1
    desk.folder.mkdir()

    def respond_late() -> None:
        client, _ = alive.accept()
        with client:
            time.sleep(1)
            client.sendall(b"\0\0\0\4\0\0\0\0\0")
            done.wait(HANG_SECONDS)

    done = threading.Event()
    with sockets.socket(sockets.AF_UNIX) as alive, ThreadPoolExecutor() as pool:
        alive.bind(str(desk.folder / "kubelet.sock"))
        alive.listen(1)
        # The first connection only checks whether a process listens.
        pool.submit(alive.accept).add_done_callback(lambda _: respond_late())
        try:
            with pytest.raises(PluginRefusal, match="another process serves it"), desk.serving():
                pass
        finally:
            done.set()


def test_a_folder_that_cannot_be_created_is_named(desk: Desk) -> None:
    desk.folder.write_text("a file")
    with pytest.raises(PluginRefusal, match=f"{desk.folder}: File exists"), desk.serving():
        pass


def test_malformed_requests_do_not_affect_registration(desk: Desk) -> None:
    with desk.serving(), sample_plugin(folder=desk.folder):
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
