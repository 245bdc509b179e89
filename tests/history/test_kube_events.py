"""KubeEvents of an object: equal ones are one row with a count, everything else is left out."""

from chronolet.history.kube_events import about
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.kube_events import Recorded
from chronolet_schemas.pod import PodEnded

BACK_OFF = Recorded(
    object_kind="Pod",
    namespace="default",
    name="web",
    uid="u1",
    field_path="spec.containers{app}",
    severity="Warning",
    reason="BackOff",
    message="Back-off restarting failed container app",
)


def entry(number: int, event: Event, actor: str = "pod/3#17") -> Entry:
    name = registry.type_of(type(event))
    return Entry(Position(number * 1000, number), name, "pod/default/web", "", actor, "", codec.encode(event))


def changed(**fields: str) -> Recorded:
    return Recorded(**{**{name: getattr(BACK_OFF, name) for name in BACK_OFF.__struct_fields__}, **fields})


def test_equal_events_are_one_row_with_count_first_and_last() -> None:
    log = [entry(1, BACK_OFF), entry(2, changed(reason="Killing")), entry(3, BACK_OFF), entry(9, BACK_OFF)]
    killing, back_off = about(log, "Pod", "default", "web")
    assert (killing.reason, killing.count, killing.first, killing.last) == ("Killing", 1, 2000, 2000)
    assert (back_off.reason, back_off.count, back_off.first, back_off.last) == ("BackOff", 3, 1000, 9000)
    assert (back_off.source, back_off.severity, back_off.field_path) == ("pod", "Warning", "spec.containers{app}")


def test_what_differs_stays_apart() -> None:
    log = [entry(1, BACK_OFF), entry(2, changed(message="other")), entry(3, BACK_OFF, actor="prober/0#1")]
    assert [told.count for told in about(log, "Pod", "default", "web")] == [1, 1, 1]


def test_only_the_object_and_its_uid_count() -> None:
    log = [
        entry(1, changed(name="db")),
        entry(2, changed(namespace="other")),
        entry(3, changed(object_kind="Node")),
        entry(4, changed(uid="u0")),
        entry(5, changed(uid="")),
        entry(6, PodEnded(pod="default/web", uid="u1")),
        entry(7, BACK_OFF),
    ]
    assert [told.last for told in about(log, "Pod", "default", "web", "u1")] == [7000]
    assert about(log, "Pod", "default", "web", "u1")[0].count == 2
    assert [told.count for told in about(log, "Pod", "default", "web")] == [3]


def test_words_of_a_newer_release_are_left_to_the_log() -> None:
    later = entry(1, BACK_OFF)._replace(type="kube_events.Recorded@9")
    broken = entry(2, BACK_OFF)._replace(data=b"\xc1")
    assert about([later, broken], "Pod", "default", "web") == ()
