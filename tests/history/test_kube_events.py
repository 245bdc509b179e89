"""KubeEvents in the log, selected by object and uid, and merged as readers see them; other entries are skipped."""

from chronolet.history.kube_events import about, recorded
from chronolet.kube_events.view import View, correlated
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


def last_of(log: list[Entry], uid: str = "") -> list[int]:
    return [at.position.n for at, _ in recorded(log, about("Pod", "default", "web", uid))]


def test_equal_events_are_merged_with_count_first_and_last() -> None:
    log = [entry(1, BACK_OFF), entry(2, changed(reason="Killing")), entry(3, BACK_OFF), entry(9, BACK_OFF)]
    killing, back_off = correlated(recorded(log, about("Pod", "default", "web")))
    assert (killing.reason, killing.count, killing.first, killing.at) == ("Killing", 1, 2000, "2000-2")
    assert (back_off.reason, back_off.count, back_off.first, back_off.at) == ("BackOff", 3, 1000, "9000-9")
    assert (back_off.severity, back_off.field_path) == ("Warning", "spec.containers{app}")


def test_a_reader_of_everything_misses_nothing() -> None:
    log = [entry(number, changed(message=str(number % 30))) for number in range(1, 61)]
    everything = View(whole=True)
    for at, event in recorded(log, lambda _: True):
        everything.take(at, event)
    posts = everything.posts()
    assert [post.message for post in posts] == [str(number % 30) for number in range(31, 61)]
    assert {post.count for post in posts} == {2}
    kept = correlated(recorded(log, lambda _: True))
    assert len(kept) == 10
    assert kept[-1].message == "(combined from similar events): 25"


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
    assert last_of(log, "u1") == [5, 7]
    assert last_of(log) == [4, 5, 7]


def test_events_of_a_newer_release_are_skipped() -> None:
    later = entry(1, BACK_OFF)._replace(type="kube_events.Recorded@9")
    broken = entry(2, BACK_OFF)._replace(data=b"\xc1")
    assert last_of([later, broken]) == []
