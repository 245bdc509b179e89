"""Answers why a container restarted, or why a pod is in its state. Pure.

Input: the history of a pod, a question. Output: `Answer`: the first sentence, the chain of causes, what would have
settled what is not known, a timeline. Next: `cli.history.why`, which prints it.

Without a number or a moment, the question is about the present state if something is wrong with it, and about the last
restart otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from chronolet.history.why import causes, headlines
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.endings import ending
from chronolet.history.why.facts import Fact
from chronolet.history.why.lacking import names_a_gap, settled_by
from chronolet.history.why.present import replacement, trouble
from chronolet.history.why.records import Life, PodHistory, Restart
from chronolet.history.why.resources import pulled_again
from chronolet.history.why.timeline import Step, timeline
from chronolet_schemas import container_gc, kernel, manifests, pleg, pod
from chronolet_schemas.envelope import START

MOST_STEPS = 60
"""The maximum number of steps in a timeline; the newest are kept."""


class WhyError(ValueError):
    """A question that has no answer. The text says what was found and expected."""


class Question(NamedTuple):
    """What to explain: the restart with this number, the last one (`restart`), or what matters most.

    `container`: only this one; empty for all.
    """

    container: str = ""
    nth: int | None = None
    restart: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `sentence` is the answer in one sentence, `chain` why it is so, the root first.

    `settled_by`: evidence that the log lacks. `left_out`: how many older steps the timeline lacks.
    """

    pod: str
    uid: str
    container: str
    about: Literal["restart", "state"]
    restart: int = 0
    sentence: str
    chain: tuple[Cause, ...]
    settled_by: tuple[str, ...] = ()
    timeline: tuple[Step, ...] = ()
    left_out: int = 0


def answer(history: PodHistory, question: Question) -> Answer:
    """Answer a question about a pod. Raises WhyError if the log has no such pod, container or restart."""
    if not history.lives:
        return _never_accepted(history)
    life = history.lives[-1]
    _expect_container(life, question.container)
    restarts = life.restarts(question.container)
    if question.nth is not None:
        return _restart(history, life, _numbered(history, life, restarts, question))
    wrong = trouble(history, life, question.container)
    if restarts and (question.restart or not wrong or _follows(restarts[-1], wrong)):
        return _restart(history, life, restarts[-1])
    return _state(history, life, wrong or replacement(history, life) or _running(history, life), question.container)


def _numbered(history: PodHistory, life: Life, restarts: Sequence[Restart], question: Question) -> Restart:
    if not question.container and len({one.before.container for one in restarts}) > 1:
        names = ", ".join(dict.fromkeys(one.before.container for one in restarts))
        raise WhyError(
            f"several containers of {history.name} have restarted: found --nth {question.nth} without a container, "
            f"expected -c with one of {names}"
        )
    if question.nth is not None and 1 <= question.nth <= len(restarts):
        return restarts[question.nth - 1]
    what = f"container {question.container} of {history.name}" if question.container else history.name
    count = "no restart" if not restarts else "1 restart" if len(restarts) == 1 else f"{len(restarts)} restarts"
    raise WhyError(f"{what} has {count} under its uid {life.uid}: found {question.nth}, expected a number up to that")


def _expect_container(life: Life, container: str) -> None:
    names = life.names()
    if container and container not in names:
        raise WhyError(f"found container {container!r}, expected one of the pod's containers: {', '.join(names)}")


def _follows(restart: Restart, wrong: Sequence[Cause]) -> bool:
    """Whether the trouble is only that the container has not become ready again since its restart."""
    first = wrong[0]
    if restart.after is None or not isinstance(first, causes.NotReady | causes.Starting):
        return False
    ready = isinstance(first, causes.Starting) or first.consecutive < max(first.threshold, 1)
    return ready and getattr(first, "container", restart.before.container) == restart.before.container


# -- a restart ---------------------------------------------------------------------------------------------------------
def _restart(history: PodHistory, life: Life, restart: Restart) -> Answer:
    before, after = restart.before, restart.after
    chain = [*ending(history, life, before)]
    scheduled = before.scheduled.event if before.scheduled else None
    if before.scheduled and isinstance(scheduled, pod.RestartScheduled) and scheduled.back_off_seconds:
        chain.append(
            causes.BackOff(
                container=before.container,
                seconds=scheduled.back_off_seconds,
                until=scheduled.at,
                **where(before.scheduled),
            )
        )
    if after is not None:
        chain += pulled_again(history, life, before.container, before.started.position, after.started.position)
        ended = before.exit.finished_at if before.exit else before.started.at
        chain.append(
            causes.Restarted(
                container=after.container,
                attempt=after.attempt,
                milliseconds=after.started_at - ended if before.exit and ended else -1,
                **where(after.started),
            )
        )
    chain += [causes.Collected(rule=one.rule, **where(fact)) for fact, one in before.of(container_gc.Removed)]
    return _answer(
        history,
        life,
        about="restart",
        container=before.container,
        number=restart.number,
        chain=chain,
        sentence=headlines.of_restart(history.name, restart, chain, counted=_counted(history, life, restart)),
        facts=_of_restart(history, life, restart),
    )


def _counted(history: PodHistory, life: Life, restart: Restart) -> bool:
    """Whether the log has all restarts of the container up to this one."""
    attempts = [one.attempt for one in life.runs_of(restart.before.container)]
    missing = any(later - earlier > 1 for earlier, later in pairwise(attempts))
    first = life.facts[0].position if life.facts else START
    return not (life.adopted or missing or history.gap(first, restart.position))


def _of_restart(history: PodHistory, life: Life, restart: Restart) -> Sequence[Fact]:
    """Return the facts from the start of the run that ended to the start of the next one."""
    begin = restart.before.started.position
    end = restart.after.started.position if restart.after else None
    own = restart.before.container
    chosen = [
        one
        for one in (*life.facts, *history.node)
        if one.position >= begin
        and (end is None or one.position <= end)
        and getattr(one.event, "container", own) in (own, pleg.SANDBOX)
    ]
    after = [fact for fact, _ in restart.before.of(container_gc.Removed) if end is not None and fact.position > end]
    return [*chosen, *after]


# -- the state of a pod ------------------------------------------------------------------------------------------------
def _state(history: PodHistory, life: Life, chain: Sequence[Cause], container: str) -> Answer:
    begin = history.begin_of(life)
    gap = history.gap(life.specs[0][0] if life.specs and not life.adopted else begin)
    if gap is not None and not any(map(names_a_gap, chain)):
        chain = (*chain, causes.LogGap(**where(gap)))
    mine = [
        one
        for one in (*life.facts, *history.requests)
        if getattr(one.event, "uid", life.uid) == life.uid
        and one.position > begin
        and (not container or getattr(one.event, "container", container) in (container, pleg.SANDBOX))
    ]
    return _answer(
        history,
        life,
        about="state",
        container=container or getattr(chain[0], "container", ""),
        number=0,
        chain=chain,
        sentence=headlines.of_state(history.name, chain),
        facts=mine,
    )


def _running(history: PodHistory, life: Life) -> Sequence[Cause]:
    """Return that all is well, which images had to be pulled again for that, and what the log has lost."""
    last = life.runs[-1].started if life.runs else life.facts[-1]
    pulled = [one for name in life.names() for one in pulled_again(history, life, name, START, last.position)]
    lost = [
        causes.LogLost(entries=event.entries, **where(fact))
        for fact, event in history.node_events(kernel.LogLost)
        if life.adopted
    ]
    return (causes.Running(since=last.at, adopted=life.adopted, **where(last)), *pulled, *lost[-1:])


def _never_accepted(history: PodHistory) -> Answer:
    """Answer for a pod that was requested, but that the log has no life of."""
    if not history.requests:
        raise WhyError(f"the log has no entries about {history.name}")
    last = history.requests[-1]
    if isinstance(last.event, manifests.PodRefused):
        chain: tuple[Cause, ...] = (
            causes.Failed(reason="PodRefused", message=last.event.reason, rejected=True, **where(last)),
        )
    else:
        chain = (causes.Starting(step=type(last.event).__name__, **where(last)),)
    life = Life(uid=getattr(last.event, "uid", ""))
    return _state(history, life, chain, "")


def _answer(
    history: PodHistory,
    life: Life,
    *,
    about: Literal["restart", "state"],
    container: str,
    number: int,
    chain: Sequence[Cause],
    sentence: str,
    facts: Sequence[Fact],
) -> Answer:
    steps = timeline(facts)
    left_out = max(len(steps) - MOST_STEPS, 0)
    return Answer(
        pod=history.name,
        uid=life.uid,
        container=container,
        about=about,
        restart=number,
        sentence=sentence,
        chain=tuple(chain),
        settled_by=tuple(line for one in chain for line in settled_by(one)),
        timeline=steps[left_out:],
        left_out=left_out,
    )
