"""State shared by the two workers of pleg.

Input: notices, and when the stream opens and ends. Output: `Link`. Next: `follow`, `relist`.
"""

from __future__ import annotations

import threading

from msgspec import Struct, field


class Link(Struct):
    """State shared by the two workers. `standing`: whether the stream is open; `opened`: how often it was opened;
    `relist_now`: wakes the listing.

    `destroyed`: ids whose removal was noticed while a listing may have been running, so that the listing's results for
    them are outdated. `noticed`: ids that started or died since the last listing and whose removal was not noticed (the
    notice of a removal is lost if the engine is killed). `sending` serializes the signals of the two workers.
    """

    standing: bool = False
    opened: int = 0
    relist_now: threading.Event = field(default_factory=threading.Event)
    destroyed: set[str] = field(default_factory=set)
    noticed: set[str] = field(default_factory=set)
    sending: threading.Lock = field(default_factory=threading.Lock)
