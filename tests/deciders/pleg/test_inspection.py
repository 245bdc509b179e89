"""Which containers are inspected after a listing."""

from __future__ import annotations

from chronolet.pleg.containers.inspection import Glance, to_inspect, without_running

WEB = {"a": Glance(uid="web", state="running"), "b": Glance(uid="web", state="exited")}
DB = {"c": Glance(uid="db", state="running")}


def test_an_unchanged_listing_needs_no_inspect() -> None:
    assert to_inspect(WEB | DB, WEB | DB, ()) == ()


def test_all_containers_of_a_changed_pod_are_inspected() -> None:
    assert to_inspect({"a": WEB["a"]} | DB, WEB | DB, ()) == ("a", "b")
    assert to_inspect(WEB | DB, {**WEB, "b": Glance(uid="web", state="running")} | DB, ()) == ("a", "b")


def test_a_missing_container_and_the_rest_of_its_pod_are_inspected() -> None:
    assert to_inspect(WEB | DB, {"a": WEB["a"]} | DB, ()) == ("a", "b")
    assert to_inspect(WEB | DB, WEB, ()) == ("c",)


def test_pods_whose_inspect_failed_are_inspected_again() -> None:
    assert to_inspect(WEB | DB, WEB | DB, {"db"}) == ("c",)


def test_containers_that_do_not_run_are_the_likely_news_of_a_first_listing() -> None:
    assert without_running(("a", "b", "gone"), WEB) == ("b", "gone")
