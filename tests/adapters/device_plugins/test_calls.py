"""Calls to plugins: options, preferences, allocation, pre-start."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from chronolet.ports.devices.plugins import PluginRefusal
from chronolet_schemas.devices import DeviceNode, Mount, PluginOptions
from tests.adapters.device_plugins.support import Desk, made
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.scratch import HANG_SECONDS


def test_an_allocation_is_passed_on_completely(desk: Desk) -> None:
    options = ["--device-node", "/dev/fuse:/dev/f:r", "--mount", "/etc:/mnt/etc:ro", "--env", "A=1"]
    options += ["--annotation", "k=v", "--cdi", "example.com/thing={id}"]
    with sample_plugin(*options, folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        (answer,) = desk.plugins.allocate(path, ["thing-1", "thing-0"])
        assert answer.envs == {"EXAMPLE_COM_THING": "thing-1,thing-0", "A": "1"}
        assert answer.devices == (DeviceNode(container_path="/dev/f", host_path="/dev/fuse", permissions="r"),)
        assert answer.mounts == (Mount(container_path="/mnt/etc", host_path="/etc", read_only=True),)
        assert answer.annotations == {"k": "v"}
        assert answer.cdi_devices == ("example.com/thing=thing-1", "example.com/thing=thing-0")
        desk.plugins.pre_start(path, ["thing-1"])
        plugin.wait_for("prestart thing-1")


def test_options_are_requested_once_the_plugin_listens(desk: Desk) -> None:
    path = str(made(desk.folder) / "example_com_thing.sock")
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(desk.plugins.options, path)
        with sample_plugin("--pre-start", folder=desk.folder):
            assert asking.result(HANG_SECONDS) == PluginOptions(pre_start_required=True)
    with sample_plugin("--do", "crash options", folder=desk.folder) as plugin:
        plugin.wait_for("serves")
        with pytest.raises(PluginRefusal) as raised:
            desk.plugins.options(path)
        assert raised.value.kind == "away"


def test_a_preferred_allocation_is_requested(desk: Desk) -> None:
    with sample_plugin("--preferred", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        assert desk.plugins.options(path) == PluginOptions(preferred_allocation=True)
        found = desk.plugins.preferred(path, ["thing-0", "thing-1", "thing-2"], ["thing-0"], 2)
        assert found == ("thing-0", "thing-2")


@pytest.mark.parametrize("count", [0, 2])
def test_a_wrong_number_of_responses_is_passed_on(desk: Desk, count: int) -> None:
    with sample_plugin("--do", f"answers {count}", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        assert len(desk.plugins.allocate(path, ["thing-0"])) == count


def test_a_refusal_has_the_message_of_the_plugin(desk: Desk) -> None:
    with sample_plugin("--do", "fail allocate no more", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with pytest.raises(PluginRefusal) as raised:
            desk.plugins.allocate(path, ["thing-0"])
        assert (raised.value.kind, str(raised.value)) == ("failed", "rpc error: code = Unknown desc = no more")


def test_a_late_response_is_a_timeout(desk: Desk, hasty: Desk) -> None:
    # The plugin responds only after the command `usual`, no matter how long this process is stopped.
    with sample_plugin("--do", "hang allocate", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with pytest.raises(PluginRefusal) as raised:
            hasty.plugins.allocate(path, ["thing-0"])
        assert raised.value.kind == "late"
        plugin.do("usual")
        assert len(desk.plugins.allocate(path, ["thing-1"])) == 1


@pytest.mark.parametrize("how", ["crash", "crash-late"])
def test_a_plugin_that_dies_during_a_call_is_away(desk: Desk, how: str) -> None:
    with sample_plugin("--do", f"{how} allocate", folder=made(desk.folder)) as plugin:
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


def test_a_hanging_plugin_does_not_delay_others(desk: Desk) -> None:
    folder = made(desk.folder)
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


def test_a_path_too_long_for_a_socket_is_named(desk: Desk) -> None:
    with pytest.raises(PluginRefusal, match="exceeds the 107 bytes"):
        desk.plugins.allocate(f"/tmp/{'x' * 110}.sock", [])


def test_an_overlong_command_of_the_sample_plugin_is_dropped(desk: Desk) -> None:
    with sample_plugin(folder=made(desk.folder)) as plugin:
        plugin.write("healthy " + "x" * 200_000)
        plugin.wait_for("command dropped: longer than 65536 characters")
        plugin.do("healthy thing-7")
        assert not plugin.count("command 'xxx"), "the rest of the line is no command"
