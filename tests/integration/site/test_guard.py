"""The site guard of a process, with a scripted machine and engine, on a real redis-server."""

from collections.abc import Iterator

import pytest

from chronolet.adapters.machine.machine_id import MachineIdUnknown
from chronolet.kernel.storage.redis.sites import RedisSites, Site
from chronolet.kernel.storage.store import HistoryMissing, StoreUnreachable
from chronolet.node.site.guard import SiteGuard, Sources
from chronolet.ports.runtime.runtime import EngineIdentity, Refusal
from chronolet_schemas.keys import Keys
from tests.integration.site.support import NODE, RUN, Log
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import wait_until

KINDS = frozenset({"pleg", "pod"})
OTHER = Site(machine_id="m2", engine_id="E", engine_root="/data")


class Machine:
    """One process on one machine. Change its fields to change what its guard finds."""

    def __init__(self, url: str, process: str, machine_id: str, *, pleg: bool = True) -> None:
        self.machine_id = machine_id
        self.engine: EngineIdentity | None = EngineIdentity(id="E", root="/data")
        self.strange: str | Exception = ""
        self.asked_for_strangers = 0
        sources = Sources(
            RedisSites(url, NODE), self._machine, self._engine, self._stranger if pleg else None, lambda: process
        )
        self.guard = SiteGuard(NODE, KINDS, sources, period_seconds=0.05)

    def _machine(self) -> str:
        if not self.machine_id:
            raise MachineIdUnknown("no file")
        return self.machine_id

    def _engine(self) -> EngineIdentity:
        if self.engine is None:
            raise Refusal("unavailable", "no engine")
        return self.engine

    def _stranger(self) -> str:
        self.asked_for_strangers += 1
        if isinstance(self.strange, Exception):
            raise self.strange
        return self.strange

    def wait_for(self, text: str) -> None:
        """Wait until the guard's own checks refuse for a reason with this text; empty: until they do not refuse."""
        wait_until(lambda: text in self.guard.reason() if text else not self.guard.reason(), text or "no refusal")


@pytest.fixture
def machines(log: Log) -> Iterator[list[Machine]]:
    made = [Machine(log.url, "a", "m1"), Machine(log.url, "b", "m2")]
    yield made
    for one in made:
        one.guard.stop()


def test_the_first_process_records_its_site_and_the_second_is_refused(log: Log, machines: list[Machine]) -> None:
    one, two = machines
    assert one.guard.refuses(RUN) == {}
    one.guard.permit()
    refused = two.guard.refuses(RUN)
    assert refused.keys() == KINDS
    assert "node n lives on machine m1" in refused["pod"]
    with pytest.raises(Refusal, match="lives on machine m1"):
        two.guard.permit()
    assert log.sites.refusals().keys() == {"b"}
    assert len(log.recorded()) == 1
    two.guard.stop()
    assert log.sites.refusals() == {}


def test_a_moved_node_changes_both_verdicts(log: Log, machines: list[Machine]) -> None:
    one, two = machines
    one.guard.refuses(RUN)
    two.guard.refuses(RUN)
    former = log.sites.recorded().site
    assert log.sites.record(RUN, former, OTHER, "cli/1")
    one.wait_for("lives on machine m2")
    two.wait_for("")
    two.guard.permit()
    with pytest.raises(Refusal, match="lives on machine m2"):
        one.guard.permit()


def test_an_engine_that_is_replaced_is_refused_at_the_next_call_and_accepted_when_it_returns(
    log: Log, machines: list[Machine], redis_server: PrivateRedis
) -> None:
    """Once the engine has returned, the process is no longer refused, and records the site of a new log."""
    one, _ = machines
    one.guard.refuses(RUN)
    former, one.engine = one.engine, EngineIdentity(id="E", root="/elsewhere")
    with pytest.raises(Refusal, match=r"found engine E \(/elsewhere\)") as raised:
        one.guard.permit()
    assert raised.value.kind == "unavailable", "callers retry, and take nothing for gone"
    one.wait_for("start the former engine")
    one.engine = former
    one.guard.permit()
    one.wait_for("")
    redis_server.client().flushall()
    log.begin("run2")
    assert one.guard.refuses("run2") == {}
    assert len(log.recorded()) == 1


def test_an_engine_that_does_not_answer_is_waited_for(log: Log, machines: list[Machine]) -> None:
    """Until the engine answers, the kinds are hosted so that pleg reports the outage, but no call is permitted, and no
    site is recorded.
    """
    one, _ = machines
    former, one.engine = one.engine, None
    assert one.guard.refuses(RUN) == {}
    with pytest.raises(Refusal, match="no engine"):
        one.guard.permit()
    assert log.recorded() == []
    one.engine = former
    one.guard.permit()
    assert len(log.recorded()) == 1


def test_a_missing_machine_id_is_refused_until_it_is_there(log: Log, machines: list[Machine]) -> None:
    one, _ = machines
    one.machine_id = ""
    assert one.guard.refuses(RUN) == dict.fromkeys(KINDS, "no file")
    assert log.recorded() == []
    one.machine_id = "m1"
    one.wait_for("")
    assert len(log.recorded()) == 1


def test_an_old_log_is_not_claimed_by_an_engine_without_its_containers(log: Log, machines: list[Machine]) -> None:
    one, two = machines
    two.strange = "this engine has none of them"
    assert two.guard.refuses(RUN) == dict.fromkeys(KINDS, "this engine has none of them")
    with pytest.raises(Refusal, match="none of them"):
        two.guard.permit()
    assert one.guard.refuses(RUN) == {}
    (event,) = log.recorded()
    assert event.machine_id == "m1"
    two.wait_for("lives on machine m1")
    assert two.asked_for_strangers == 1, "an objection stands for a while, since it folds the log"


@pytest.mark.parametrize("error", [HistoryMissing("no archive"), Refusal("timeout", "listing hangs")])
def test_a_process_that_cannot_tell_records_nothing(log: Log, machines: list[Machine], error: Exception) -> None:
    one, _ = machines
    one.strange = error
    assert f"cannot tell whether node n lives here: {error}" in one.guard.refuses(RUN)["pod"]
    assert log.recorded() == []


def test_a_process_without_pleg_records_nothing_and_waits_for_nobody(log: Log) -> None:
    """On the log of an older release, a process without pleg works as before until another process records the site."""
    prober = Machine(log.url, "c", "m9", pleg=False)
    assert prober.guard.refuses(RUN) == {}
    prober.guard.permit()
    assert log.recorded() == []
    log.sites.record(RUN, None, OTHER, "process/b")
    prober.wait_for("lives on machine m2")
    prober.guard.stop()


def test_a_refused_process_does_not_claim_the_log_that_follows_a_lost_one(
    log: Log, machines: list[Machine], redis_server: PrivateRedis
) -> None:
    one, two = machines
    one.guard.refuses(RUN)
    two.guard.refuses(RUN)
    one.guard.stop()
    redis_server.client().flushall()
    log.begin("run2")
    assert "was refused for node n before" in two.guard.refuses("run2")["pod"]
    assert log.recorded() == []
    again = Machine(log.url, "a2", "m1")
    assert again.guard.refuses("run2") == {}
    two.wait_for("lives on machine m1")
    again.guard.stop()


def test_a_damaged_record_refuses_and_an_outage_keeps_the_verdict(
    log: Log, machines: list[Machine], redis_server: PrivateRedis
) -> None:
    one, two = machines
    redis_server.client().set(Keys(NODE).refusals, "a key of the wrong type only informs nobody")
    redis_server.client().hset(Keys(NODE).meta, "site", "garbage")
    assert "field site: found 'garbage'" in one.guard.refuses(RUN)["pod"]
    redis_server.client().hdel(Keys(NODE).meta, "site")
    one.wait_for("")
    redis_server.kill9()
    assert one.guard.refuses(RUN) == {}
    one.guard.permit()
    with pytest.raises(StoreUnreachable):
        two.guard.refuses(RUN)
