"""Computes the calls to plugins that open claims need, and finds the claim that an answer is for. Pure.

Input: State. Output: effects from `wanted`; the claim that an answer is for. Next: `outstanding`, which adds the other
effects; `answers` and `pre_start`, which handle what the workers report. The serial number in an intent distinguishes a
late answer from the answer to the outstanding call.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.devices import signals, wanted
from chronolet.devices.claims.stock import available, nodes_of
from chronolet.devices.claims.topology import grouped
from chronolet.devices.state import Claim, State
from chronolet.rules.refs import EffectRef


def outstanding(state: State) -> Iterator[wanted.Wanted]:
    """Yield the calls for all open claims."""
    for key in state.open:
        claim = state.claims[key]
        if claim.phase == "preferring":
            yield _prefer(state, claim)
        elif claim.phase == "allocating":
            yield wanted.Allocate(
                **_question(claim),
                resource=claim.resource,
                socket=_socket(state, claim.resource),
                devices=claim.chosen,
            )
        if claim.starting is not None:
            yield _pre_start(state, claim, claim.starting)


def questioned(state: State, answer: signals.Answered) -> Claim | None:
    """Return the claim whose call about devices `answer` is for; None if that call is no longer outstanding."""
    return next((claim for claim in _open_claims(state) if _answers(answer, _question(claim))), None)


def starting(state: State, answer: signals.Answered) -> Claim | None:
    """Return the claim whose start notification `answer` is for; None if that notification is no longer open."""
    return next(
        (claim for claim in _open_claims(state) if claim.starting is not None and _answers(answer, _start(claim))),
        None,
    )


def _open_claims(state: State) -> Iterator[Claim]:
    return (state.claims[key] for key in state.open)


def _answers(answer: signals.Answered, question: EffectRef) -> bool:
    return answer.subject == question["subject"] and answer.intent == question["intent"]


def _question(claim: Claim) -> EffectRef:
    """Return the subject and intent of the outstanding call about a claim's devices."""
    return EffectRef(subject=f"claim/{claim.id}", intent=f"{claim.phase}/{claim.serial}")


def _start(claim: Claim) -> EffectRef:
    """Return the subject and intent of the open notification before a container's start."""
    return EffectRef(subject=f"start/{claim.id}", intent=f"start/{claim.start_serial}")


def _prefer(state: State, claim: Claim) -> wanted.Prefer:
    resource = state.resources.get(claim.resource)
    free = available(state, claim.resource, () if resource is None else resource.healthy())
    among = grouped(free, nodes_of(state, claim.resource), claim.near).aligned if claim.near else free
    return wanted.Prefer(
        **_question(claim),
        resource=claim.resource,
        socket=_socket(state, claim.resource),
        available=tuple(sorted({*among, *claim.must_include})),
        must_include=claim.must_include,
        size=claim.size,
    )


def _pre_start(state: State, claim: Claim, attempt: int) -> wanted.PreStart:
    return wanted.PreStart(
        **_start(claim),
        attempt=attempt,
        calls=tuple(
            wanted.PreStartCall(resource=name, socket=_socket(state, name), devices=one.devices)
            for name, one in sorted(claim.held.items())
            if one.pre_start
        ),
    )


def _socket(state: State, name: str) -> str:
    """Return the plugin's socket; empty if it has none, in which case the worker reports that the plugin cannot be
    reached.
    """
    resource = state.resources.get(name)
    return resource.socket if resource is not None else ""
