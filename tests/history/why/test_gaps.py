"""Histories with missing entries: an answer may know less, but it is one sentence, or a clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import pytest

from chronolet.history.why import causes
from chronolet.history.why.answer import Question, WhyError, answer
from chronolet.history.why.causes import Cause
from chronolet.history.why.facts import Fact, Missing
from chronolet.history.why.lives import pod_history
from chronolet.history.why.sentences import clause
from chronolet.history.why.wording import named, quoted, seconds
from chronolet_schemas import pod
from chronolet_schemas.envelope import Position
from tests.history.why.happenings import LOST, adopted
from tests.history.why.states import STATES
from tests.history.why.stories import NAME, Story
from tests.history.why.test_endings import ROOTS, boxless

STORIES: list[tuple[str, Callable[[], Story]]] = [
    *((f"state: {what}", story) for what, story, *_ in STATES),
    *((f"end: {what}", lambda story=story: story().restarts(1)) for what, story, _ in ROOTS),
]


def parts(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    """Yield the beginnings and ends of a history, and the history without each of its entries."""
    for at in range(len(facts)):
        yield facts[:at]
        yield facts[at:]
        yield [*facts[:at], *facts[at + 1 :]]
    yield facts[::-1]


@pytest.mark.parametrize(("what", "story"), STORIES, ids=[what for what, _ in STORIES])
def test_an_incomplete_history_has_an_answer_or_a_clear_error(what: str, story: Callable[[], Story]) -> None:
    answers = 0
    for facts in parts(story().facts):
        for question in (Question(), Question(nth=1), Question("app"), Question(restart=True)):
            try:
                found = answer(pod_history(NAME, facts), question)
            except WhyError:
                continue
            answers += 1
            assert found.chain, what
            assert found.sentence.endswith(".")
            assert "\n" not in found.sentence
            positions = [Position.parse(one.position) for one in found.timeline]
            assert positions == sorted(positions)
    assert answers > 0


def all_causes(base: type[Cause] = Cause) -> Iterator[type[Cause]]:
    for one in base.__subclasses__():
        yield one
        yield from all_causes(one)


def test_every_cause_occurs_in_a_story_or_has_its_own_test() -> None:
    """Every cause must be worded: `clause` raises for one that is not in its table."""
    found = {type(one) for _, story in STORIES for one in story().answer().chain}
    own = {
        causes.BackOff,
        causes.DiskFull,
        causes.EndNotRecorded,
        causes.ImagePulledAgain,
        causes.KilledEarly,
        causes.LogGap,
        causes.LogLost,
        causes.NoticedLate,
        causes.StartFailed,
    }
    assert set(all_causes()) - found - own == set()


def test_a_history_of_another_pod_with_a_similar_name_is_not_mixed_in() -> None:
    story = Story().runs().dies(1)
    with pytest.raises(WhyError, match="the log has no entries about default/we"):
        answer(pod_history("default/we", story.facts), Question())


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0.000 s"), (353, "0.353 s"), (12_400, "12.4 s"), (185_000, "3 min 5 s"), (7_800_000, "2 h 10 min")],
)
def test_durations_are_worded(milliseconds: int, text: str) -> None:
    assert seconds(milliseconds) == text


def test_long_texts_and_unknown_signals_are_worded() -> None:
    assert quoted("a\n b\t c") == '"a b c"'
    assert len(quoted("x" * 1000)) == 305
    assert (named(9), named(64)) == ("SIGKILL", "signal 64")
    stopped = causes.Stopped(at=1, position="1-1", container="app", reason="LivenessFailed", grace_period_seconds=3)
    assert clause(stopped) == "chronolet stopped it, because its liveness probe failed, with a grace period of 3 s"


def test_a_text_of_a_program_cannot_end_its_quotation() -> None:
    assert quoted('x"; it was not chronolet; "') == "\"x'; it was not chronolet; '\""


@pytest.mark.parametrize("reason", get_args(pod.StopReason))
def test_each_reason_of_a_stop_is_worded(reason: pod.StopReason) -> None:
    where = {"at": 1, "position": "1-1"}
    words = clause(causes.Stopped(**where, container="app", reason=reason, grace_period_seconds=3))  # type: ignore[arg-type]
    assert words.startswith("chronolet stopped it, ")


def test_chronolet_is_never_cleared_if_the_start_of_the_run_is_missing() -> None:
    """It may have stopped the container, or replaced its sandbox, before the first entry of the history."""
    found: set[type[Cause]] = set()
    killed = ("killed", lambda: Story().runs().probe_fails("Readiness", 1).dies(137, sent=(9,)).restarts(1))
    for _, story in (*STORIES, killed):
        facts = story().facts
        for at in range(1, len(facts)):
            history = pod_history(NAME, facts[at:])
            if not any(life.runs and life.runs[0].start_missing for life in history.lives[:1]):
                continue
            try:
                root = answer(history, Question(nth=1)).chain[0]
            except WhyError:
                continue
            found.add(type(root))
            # Except if Docker's notices show that it sent no signal to the run.
            assert not getattr(root, "others", False) or getattr(root, "not_docker", False), root
    assert found >= {causes.SandboxDied, causes.Unexplained, causes.OtherSignal, causes.ExitedByItself}


@pytest.mark.parametrize("what", ["liveness, ended in time", "manifest"])
def test_a_stop_that_may_be_missing_is_named_before_an_exit_with_code_0(what: str) -> None:
    facts = next(story for name, story in STORIES if name == f"end: {what}")().facts
    stop = next(at for at, one in enumerate(facts) if isinstance(one.event, pod.ContainerStopRequested))
    gone = next(at for at, one in enumerate(facts) if isinstance(one.event, pod.ContainerExited))
    gap = Fact(facts[stop - 1].stamp, "", Missing())
    for left in ([*facts[:4], gap, *facts[gone:]], facts[gone:]):
        found = answer(pod_history(NAME, left), Question(nth=1))
        root = found.chain[0]
        assert isinstance(root, causes.ExitedByItself)
        assert not root.others
        assert "by itself, or because chronolet or someone else stopped it through Docker" in found.sentence
        assert "the missing entries of the log" in found.settled_by


@pytest.mark.parametrize(
    ("exit_code", "sent", "root", "cleared"),
    [
        (143, None, causes.Unexplained, False),
        (143, (), causes.Unexplained, True),  # Docker's notices show that nobody sent a signal
        (143, (1,), causes.Unexplained, False),  # others may have been missed
        (143, (15,), causes.OtherSignal, False),
        (137, (15, 9), causes.OtherSignal, False),
    ],
)
def test_chronolet_is_not_cleared_of_the_end_of_an_adopted_run(
    exit_code: int, sent: tuple[int, ...] | None, root: type[Cause], *, cleared: bool
) -> None:
    """The lost end of the log may have had its request to stop the container, whose signal was then still pending."""
    story = Story()
    story.facts.clear()
    story.add("node/n", LOST).has(adopted()).dies(exit_code, sent=sent).restarts(1)
    found = story.answer()
    assert (type(found.chain[0]), getattr(found.chain[0], "others", None)) == (root, cleared)
    assert ("the missing entries of the log" in found.settled_by) is not cleared
    assert "chronolet did not stop it" not in found.sentence or cleared


def test_chronolet_is_not_cleared_of_the_end_of_an_adopted_sandbox() -> None:
    story = boxless()
    story.facts[:4] = Story().has(adopted()).facts[-1:]
    assert story.restarts(1).causes()[:2] == [causes.SandboxDied, causes.Stopped]
    assert "it may have been chronolet" in story.sentence()


@pytest.mark.parametrize(("what", "root"), [("sandbox", causes.SandboxDied), ("liveness", causes.ProbeFailed)])
def test_the_stop_of_a_run_whose_start_is_missing_is_known(what: str, root: type[Cause]) -> None:
    story = next(story for name, story in STORIES if name == f"end: {what}")()
    begin = next(at for at, one in enumerate(story.facts) if isinstance(one.event, pod.ContainerStarted))
    history = pod_history(NAME, story.facts[begin + 1 :])
    assert history.lives[0].runs[0].start_missing
    found = answer(history, Question(nth=1))
    assert [type(one) for one in found.chain[:2]] == [root, causes.Stopped]
    assert not getattr(found.chain[0], "others", False)
    if root is causes.SandboxDied:
        assert "the missing entries of the log" in found.settled_by
        assert "it may have been chronolet" in found.sentence
