"""Histories in which any part is missing: the answer has the same root, or says that entries are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from chronolet.history.why.answer import Answer, Question, WhyError, answer
from chronolet.history.why.causes import Cause
from chronolet.history.why.facts import Fact, Missing
from chronolet.history.why.lives import pod_history
from chronolet_schemas.envelope import START
from chronolet_schemas.times import Stamp
from tests.history.why.stories import NAME, Story
from tests.history.why.test_gaps import STORIES

LACKING = "the missing entries of the log"


def gapped(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    """Yield the history without each of its slices: in their place is a gap, or entries that cannot be decoded."""
    for begin in range(len(facts)):
        before = facts[begin - 1].stamp if begin else Stamp(START, 0)
        for end in range(begin + 1, len(facts) + 1):
            undecoded = [Fact(one.stamp, "", Missing()) for one in facts[begin:end]]
            for missing in ([Fact(before, "", Missing())], undecoded):
                yield [*facts[:begin], *missing, *facts[end:]]


def asked(facts: Sequence[Fact], question: Question) -> Answer | None:
    try:
        return answer(pod_history(NAME, facts), question)
    except WhyError:
        return None


def is_same(root: Cause, expected: Cause) -> bool:
    """Whether two causes are the same, except that what the container's definition was may not be known."""
    unknown: dict[str, Any] = {"limit": None, "policy": "", "fields": ()}
    said = {name: value for name, value in unknown.items() if getattr(root, name, ...) == value}
    return root == msgspec.structs.replace(expected, **said) if type(root) is type(expected) else False


CASES = [
    pytest.param(story, question, whole, id=f"{what}, {name}")
    for what, story in STORIES
    for name, question in (("last", Question()), ("restart 1", Question(nth=1)))
    if (whole := asked(story().facts, question)) is not None
]


@pytest.mark.parametrize(("story", "question", "whole"), CASES)
def test_an_answer_across_a_gap_has_the_same_root_or_is_hedged(
    story: Callable[[], Story], question: Question, whole: Answer
) -> None:
    facts = story().facts
    found = [one for one in (asked(left, question) for left in gapped(facts)) if one is not None]
    hedged = [one for one in found if LACKING in one.settled_by]
    assert hedged
    roots = [one.chain[0] for one in found if one not in hedged]
    assert [root for root in roots if not is_same(root, whole.chain[0])] == []
    worded = ("missing", "the log may lack a stop by chronolet", "its end is not recorded in the log")
    assert [one.sentence for one in hedged if not any(words in one.sentence for words in worded)] == []
