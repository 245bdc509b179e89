"""Plugins that are discovered in the watched folder."""

from __future__ import annotations

import socket as sockets

from chronolet.ports.devices.plugins import Registering
from tests.adapters.device_plugins.support import RESOURCE, Desk
from tests.support import scratch
from tests.support.devices.sample_plugin import sample_plugin


def test_a_plugin_is_discovered_by_its_socket_and_its_end_is_reported(desk: Desk) -> None:
    with desk.serving(watching=True):
        scratch.wait_until(desk.watched.is_dir, "the folder")
        with sample_plugin("--watched", folder=desk.watched) as plugin:
            path = str(desk.watched / "example_com_thing.sock")
            assert desk.next() == Registering(
                by="watcher", resource=RESOURCE, versions=("v1beta1",), endpoint=path, folder=str(desk.watched)
            )
            plugin.wait_for("registered")
            plugin.do("stop")
            assert plugin.end() == 0
        scratch.wait_until(lambda: desk.left == [path], "the report that it left")


def test_a_refused_discovered_plugin_gets_the_reason(desk: Desk) -> None:
    desk.problem = lambda _: "not you"
    with desk.serving(watching=True):
        scratch.wait_until(desk.watched.is_dir, "the folder")
        with sample_plugin("--watched", folder=desk.watched) as plugin:
            plugin.wait_for("refused: not you")
    assert desk.left == []


def test_a_plugin_that_returns_at_the_same_path_registers_again(desk: Desk) -> None:
    with desk.serving(watching=True):
        scratch.wait_until(desk.watched.is_dir, "the folder")
        for _ in range(2):
            with sample_plugin("--watched", folder=desk.watched) as plugin:
                assert desk.next().endpoint == str(desk.watched / "example_com_thing.sock")
                plugin.wait_for("registered")


def test_sockets_in_subfolders_are_discovered_and_hidden_or_dead_ones_are_not(desk: Desk) -> None:
    deep = desk.watched / "vendor"
    deep.mkdir(parents=True)
    for path in (desk.watched / ".hidden.sock", desk.watched / "dead.sock"):
        sockets.socket(sockets.AF_UNIX).bind(str(path))
    with desk.serving(watching=True), sample_plugin("--watched", folder=deep):
        assert desk.next().endpoint == str(deep / "example_com_thing.sock")
    assert desk.registered.empty()
