"""Device lists from plugins."""

from __future__ import annotations

import contextlib
import os
import queue
import socket as sockets
from pathlib import Path

import pytest

from chronolet.ports.devices.plugins import Following, Listing, PluginRefusal
from chronolet_schemas.devices import HEALTHY, UNHEALTHY, DeviceInfo
from tests.adapters.device_plugins.support import Desk, ended, listed, listing, made
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.scratch import HANG_SECONDS


def test_each_change_of_the_devices_is_listed(desk: Desk) -> None:
    with sample_plugin("--devices", "2", "--numa", "2", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as news:
            first = news.get(timeout=HANG_SECONDS)
            assert first == Listing(
                devices=(
                    DeviceInfo(id="thing-0", health=HEALTHY, nodes=(0,)),
                    DeviceInfo(id="thing-1", health=HEALTHY, nodes=(1,)),
                )
            )
            plugin.do("unhealthy thing-1")
            assert listed(news) == {"thing-0": HEALTHY, "thing-1": UNHEALTHY}
            plugin.do("healthy thing-1 thing-2")
            assert listed(news) == {"thing-0": HEALTHY, "thing-1": HEALTHY, "thing-2": HEALTHY}
            plugin.do("remove thing-0")
            assert listed(news) == {"thing-1": HEALTHY, "thing-2": HEALTHY}
            plugin.kill()
            assert ended(news).kind == "away"


def test_ten_thousand_devices_are_listed(desk: Desk) -> None:
    with sample_plugin("--devices", "10000", "--prefix", "d" * 40, folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as news:
            assert len(listed(news)) == 10_000


def test_a_duplicate_id_is_passed_on(desk: Desk) -> None:
    with sample_plugin("--first-twice", "--devices", "2", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as news:
            latest = news.get(timeout=HANG_SECONDS)
            assert isinstance(latest, Listing)
            assert [one.id for one in latest.devices] == ["thing-0", "thing-0", "thing-1"]


def test_a_flood_of_lists_is_reported_by_its_latest_lists_and_a_count(desk: Desk) -> None:
    with sample_plugin("--devices", "50", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as news:
            listed(news)
            plugin.do("flood 20000")
            reported: list[Listing] = []
            # Wait for the number of lists, not for the change: a list of the flood may already contain it.
            while sum(one.skipped + 1 for one in reported) < 20_002:
                latest = news.get(timeout=HANG_SECONDS)
                assert isinstance(latest, Listing)
                if not reported:
                    plugin.do("unhealthy thing-7")  # the flood has begun: the plugin sends one more list for the change
                reported.append(latest)
            assert len(reported) < 20_002 / 10, "most of them were skipped"
            assert sum(one.skipped + 1 for one in reported) == 20_002
            assert "Unhealthy" in {one.health for one in reported[-1].devices}


def test_a_plugin_that_does_not_listen_yet_is_awaited(desk: Desk) -> None:
    folder = made(desk.folder)
    with listing(desk, str(folder / "example_com_thing.sock")) as news, sample_plugin(folder=folder):
        assert len(listed(news)) == 4


def test_a_plugin_that_never_listens_times_out(hasty: Desk) -> None:
    with listing(hasty, str(hasty.folder / "nobody.sock")) as news:
        refusal = ended(news)
        assert refusal.kind == "late"
        assert "no answer within 1 s" in str(refusal)


@pytest.mark.parametrize("what", ["FIFO", "file", "folder", "socket without a server"])
def test_a_path_without_a_plugin_times_out(hasty: Desk, what: str) -> None:
    path = made(hasty.folder) / "odd.sock"
    if what == "FIFO":
        os.mkfifo(path)
    elif what == "file":
        path.write_text("no socket")
    elif what == "folder":
        path.mkdir()
    else:
        sockets.socket(sockets.AF_UNIX).bind(str(path))
    with listing(hasty, str(path)) as news:
        assert "no answer within 1 s" in str(ended(news))
    with pytest.raises(PluginRefusal):
        hasty.plugins.allocate(str(path), ["thing-0"])


def test_the_stream_of_a_silent_plugin_can_be_stopped(desk: Desk) -> None:
    with sample_plugin("--do", "hang list", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as news:
            plugin.wait_for("list")
        assert news.empty()


def test_the_streams_of_all_plugins_share_a_thread(desk: Desk) -> None:
    names = [f"a.test/r{number}" for number in range(40)]
    words = [word for name in names for word in ("--resource", name)]
    with sample_plugin(*words, "--devices", "1", folder=made(desk.folder)) as plugin, contextlib.ExitStack() as stack:
        plugin.wait_for("serves", times=len(names))
        paths = [str(desk.folder / f"a_test_r{number}.sock") for number in range(len(names))]
        with listing(desk, paths[0]) as news:
            assert len(listed(news)) == 1
            before = len(list(Path("/proc/self/task").iterdir()))
            for path in paths[1:]:
                assert len(listed(stack.enter_context(listing(desk, path)))) == 1
            # The number of gRPC's own threads varies, but there is not one per plugin.
            assert len(list(Path("/proc/self/task").iterdir())) < before + len(names) // 2


def test_a_stream_starts_once_it_may(desk: Desk) -> None:
    news, permits = queue.SimpleQueue[Listing | PluginRefusal](), iter((False, True))
    with sample_plugin(folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        stop = desk.plugins.follow(path, Following(news.put, news.put, news.put, lambda: next(permits)))
        assert len(listed(news)) == 4
        stop()
        plugin.wait_for("list is over")


def test_an_error_in_a_callback_is_reported_and_affects_no_other_stream(desk: Desk) -> None:
    failed = queue.SimpleQueue[BaseException]()

    def fails(_: Listing) -> None:
        raise ArithmeticError("odd")

    with sample_plugin(folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        desk.plugins.follow(path, Following(fails, lambda _: None, failed.put))
        assert isinstance(failed.get(timeout=HANG_SECONDS), ArithmeticError)
        with listing(desk, path) as news:
            assert len(listed(news)) == 4
