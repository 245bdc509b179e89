"""Which containers are inspected after a listing."""

from __future__ import annotations

from chronolet.pleg.containers.inspection import Glance, to_inspect, without_running

WEB = {"a": Glance(uid="web", state="running"), "b": Glance(uid="web", state="exited")}
DB = {"c": Glance(uid="db", state="running")}


def test_nothing_where_nothing_changed() -> None:
    assert to_inspect(WEB | DB, WEB | DB, ()) == ()


def test_all_of_a_pod_in_which_something_is_new_or_changed() -> None:
    assert to_inspect({"a": WEB["a"]} | DB, WEB | DB, ()) == ("a", "b")
    assert to_inspect(WEB | DB, {**WEB, "b": Glance(uid="web", state="running")} | DB, ()) == ("a", "b")


def test_what_is_not_listed_any_more_and_the_rest_of_its_pod() -> None:
    assert to_inspect(WEB | DB, {"a": WEB["a"]} | DB, ()) == ("a", "b")
    assert to_inspect(WEB | DB, WEB, ()) == ("c",)


def test_pods_that_could_not_be_inspected() -> None:
    assert to_inspect(WEB | DB, WEB | DB, {"db"}) == ("c",)


def test_what_does_not_run_or_is_gone_is_the_news_of_a_first_listing() -> None:
    assert without_running(("a", "b", "gone"), WEB) == ("b", "gone")
