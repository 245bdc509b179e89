"""Device lists of plugins."""

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


def test_devices_are_listed_and_each_change_of_them(desk: Desk) -> None:
    with sample_plugin("--devices", "2", "--numa", "2", folder=made(desk.folder)) as plugin:
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
    with sample_plugin("--devices", "10000", "--prefix", "d" * 40, folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            assert len(listed(said)) == 10_000


def test_an_id_that_is_listed_twice_is_handed_on_twice(desk: Desk) -> None:
    with sample_plugin("--first-twice", "--devices", "2", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            news = said.get(timeout=HANG_SECONDS)
            assert isinstance(news, Listing)
            assert [one.id for one in news.devices] == ["thing-0", "thing-0", "thing-1"]


def test_a_flood_is_told_by_its_latest_lists_and_counted(desk: Desk) -> None:
    with sample_plugin("--devices", "50", folder=made(desk.folder)) as plugin:
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
    folder = made(desk.folder)
    with listing(desk, str(folder / "example_com_thing.sock")) as said, sample_plugin(folder=folder):
        assert len(listed(said)) == 4


def test_a_plugin_that_never_listens_is_given_up(hasty: Desk) -> None:
    with listing(hasty, str(hasty.folder / "nobody.sock")) as said:
        refusal = ended(said)
        assert refusal.kind == "late"
        assert "no answer within 1 s" in str(refusal)


@pytest.mark.parametrize("what", ["FIFO", "file", "folder", "socket that nobody serves"])
def test_a_path_that_is_no_plugins_socket_is_given_up(hasty: Desk, what: str) -> None:
    path = made(hasty.folder) / "odd.sock"
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
    with sample_plugin("--do", "hang list", folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        with listing(desk, path) as said:
            plugin.wait_for("list")
        assert said.empty()


def test_the_streams_of_all_plugins_share_a_thread(desk: Desk) -> None:
    names = [f"a.test/r{number}" for number in range(40)]
    words = [word for name in names for word in ("--resource", name)]
    with sample_plugin(*words, "--devices", "1", folder=made(desk.folder)) as plugin, contextlib.ExitStack() as stack:
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
    with sample_plugin(folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        stop = desk.plugins.follow(path, Following(said.put, said.put, said.put, lambda: next(answers)))
        assert len(listed(said)) == 4
        stop()
        plugin.wait_for("list is over")


def test_an_error_in_a_callback_is_reported_and_harms_no_other_stream(desk: Desk) -> None:
    failed = queue.SimpleQueue[BaseException]()

    def fails(_: Listing) -> None:
        raise ArithmeticError("odd")

    with sample_plugin(folder=made(desk.folder)) as plugin:
        path = plugin.wait_for("serves").rpartition(" ")[2]
        desk.plugins.follow(path, Following(fails, lambda _: None, failed.put))
        assert isinstance(failed.get(timeout=HANG_SECONDS), ArithmeticError)
        with listing(desk, path) as said:
            assert len(listed(said)) == 4
