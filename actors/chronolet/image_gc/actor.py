"""The image_gc actor kind: one entity for the node.

Input: the effect workers, or none when only history is folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chronolet.image_gc import signals
from chronolet.image_gc.decider import DECIDER
from chronolet.image_gc.state import State
from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet_schemas import image_gc, kernel

NODE = "node"
"""Key of the kind's only entity."""


def _node(_message: Any) -> Sequence[str]:
    return (NODE,)


def kind(
    effects: Mapping[type[Effect], Job] | None = None, standing: Mapping[type[Effect], Job] | None = None
) -> Kind[State]:
    """Build the Kind. Without workers it can only fold events."""
    return Kind(
        name="image_gc",
        shards=1,
        state=State,
        format=1,
        decider=DECIDER,
        signals=signals_of(signals),
        commands={image_gc.CollectImages: _node},
        subscribes={kernel.BallastGivenUp: _node},
        precedence=9,
        at_start=(NODE,),
        effects=effects or {},
        standing=standing or {},
    )
