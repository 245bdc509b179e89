"""The rules by which shards are assigned to processes, tested as properties."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from chronolet.kernel.ownership.balance import Candidate, assign, hosts_of
from chronolet_schemas.keys import Shard, shards_of

COUNTS = {"keeper": 1, "pleg": 1, "pod": 4, "prober": 7, "qos": 1}
NAMES = tuple("abcdefg")
SHARDS = [shard for kind, count in COUNTS.items() for shard in shards_of(kind, count)]
ALL = frozenset(COUNTS)


class Case(NamedTuple):
    candidates: Mapping[str, Candidate]
    owners: Mapping[Shard, str]


_KINDS = st.frozensets(st.sampled_from(sorted(COUNTS)))
_CANDIDATES = st.dictionaries(
    st.sampled_from(NAMES), st.builds(Candidate, kinds=_KINDS, drains=st.booleans()), min_size=1
)
_OWNERS = st.dictionaries(st.sampled_from(SHARDS), st.sampled_from((*NAMES, "no candidate")))
_CASES = st.builds(Case, _CANDIDATES, _OWNERS)
_UNIFORM = st.dictionaries(st.sampled_from(NAMES), st.just(Candidate(kinds=ALL)), min_size=1)


def totals(assigned: Mapping[Shard, str], candidates: Mapping[str, Candidate]) -> Counter[str]:
    counted = Counter(assigned.values())
    counted.update(dict.fromkeys(candidates, 0))
    return counted


@given(_CASES)
def test_each_shard_goes_to_a_process_that_can_host_it(case: Case) -> None:
    assigned = assign(case.candidates, SHARDS, case.owners)
    for shard in SHARDS:
        hosts = hosts_of(shard.kind, case.candidates)
        assert assigned.get(shard) in (hosts or [None])


@given(_CASES)
def test_the_shards_of_a_kind_are_even(case: Case) -> None:
    assigned = assign(case.candidates, SHARDS, case.owners)
    for kind, count in COUNTS.items():
        hosts = hosts_of(kind, case.candidates)
        per_host = Counter(assigned[shard] for shard in shards_of(kind, count) if hosts)
        if hosts:
            assert max(per_host[host] for host in hosts) - min(per_host[host] for host in hosts) <= 1


@given(_UNIFORM, _OWNERS)
def test_totals_are_even_if_all_can_host_everything(
    candidates: Mapping[str, Candidate], owners: dict[Shard, str]
) -> None:
    counted = totals(assign(candidates, SHARDS, owners), candidates)
    assert counted.total() == len(SHARDS)
    assert max(counted.values()) - min(counted.values()) <= 1


@given(_CASES)
def test_an_assignment_that_was_carried_out_is_not_changed(case: Case) -> None:
    assigned = assign(case.candidates, SHARDS, case.owners)
    assert assign(case.candidates, SHARDS, assigned) == assigned


@given(_CASES, st.permutations(SHARDS))
def test_the_order_of_the_facts_does_not_matter(case: Case, shards: list[Shard]) -> None:
    candidates, owners = dict(reversed(case.candidates.items())), dict(reversed(case.owners.items()))
    assert assign(candidates, shards, owners) == assign(case.candidates, SHARDS, case.owners)


@given(_UNIFORM)
def test_a_process_that_joins_moves_little_more_than_its_share(candidates: Mapping[str, Candidate]) -> None:
    """At most one further shard per kind moves between the other processes, to keep the totals even."""
    before = assign(candidates, SHARDS, {})
    joined = {**candidates, "new": Candidate(kinds=ALL)}
    after = assign(joined, SHARDS, before)
    moved = [shard for shard in SHARDS if after[shard] != before[shard]]
    assert len(moved) <= totals(after, joined)["new"] + len(COUNTS)


@given(_UNIFORM, st.sampled_from(NAMES))
def test_little_more_than_the_shards_of_a_process_that_is_gone_move(
    candidates: Mapping[str, Candidate], gone: str
) -> None:
    left = {"stays": Candidate(kinds=ALL), **candidates}
    left.pop(gone, None)
    before = assign({**left, gone: Candidate(kinds=ALL)}, SHARDS, {})
    after = assign(left, SHARDS, before)
    others = [shard for shard in SHARDS if before[shard] != gone and after[shard] != before[shard]]
    assert len(others) <= len(COUNTS)


@given(_CASES)
def test_a_process_that_drains_keeps_only_what_no_other_can_host(case: Case) -> None:
    assigned = assign(case.candidates, SHARDS, case.owners)
    for shard, process in assigned.items():
        if case.candidates[process].drains:
            others = [one for one in case.candidates.values() if shard.kind in one.kinds and not one.drains]
            assert not others


@given(_UNIFORM, st.sampled_from(SHARDS))
def test_a_refused_shard_goes_to_a_process_that_has_not_refused_it(
    candidates: Mapping[str, Candidate], shard: Shard
) -> None:
    first = min(candidates)
    refusing = {**candidates, first: Candidate(kinds=ALL, refused=frozenset([shard]))}
    assigned = assign(refusing, SHARDS, {})
    for _ in range(3):
        assert (assigned[shard] == first) == (len(candidates) == 1)
        assigned = assign(refusing, SHARDS, assigned)
    assert assign(refusing, SHARDS, assigned) == assigned, "it does not come to rest"


def test_a_second_process_gets_half_of_everything() -> None:
    one, two = Candidate(kinds=ALL), Candidate(kinds=ALL)
    assigned = assign({"one": one, "two": two}, SHARDS, dict.fromkeys(SHARDS, "one"))
    assert Counter(shard.kind for shard, process in assigned.items() if process == "two") == {
        "prober": 3,
        "pod": 2,
        **{kind: 1 for kind in ("keeper", "pleg", "qos") if assigned[Shard(kind)] == "two"},
    }
    assert totals(assigned, {"one": one, "two": two}) == {"one": 7, "two": 7}


def test_a_process_for_one_kind_relieves_the_others_of_other_kinds_too() -> None:
    """The process that can host only probers gets three of their seven shards; the other two have even totals."""
    candidates = {
        "all": Candidate(kinds=ALL),
        "every": Candidate(kinds=ALL),
        "probers": Candidate(kinds=frozenset(["prober"])),
    }
    counted = totals(assign(candidates, SHARDS, dict.fromkeys(SHARDS, "all")), candidates)
    assert counted["all"] + counted["every"] == len(SHARDS) - counted["probers"]
    assert abs(counted["all"] - counted["every"]) <= 1
    assert counted["probers"] == 3


def test_who_leaves_hands_over_to_one_that_drains() -> None:
    """A drained process still serves as a standby."""
    found = assign(
        {"leaves": Candidate(kinds=ALL, leaves=True), "drains": Candidate(kinds=ALL, drains=True)}, SHARDS, {}
    )
    assert set(found.values()) == {"drains"}
