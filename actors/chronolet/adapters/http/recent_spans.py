"""The newest spans of a running agent, from its page /trace.

Comes in: the agent's address, a pod. Goes out: spans, or that it does not answer, which is no failure: the log alone
has the steps. Next: `cli.trace`.
"""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from chronolet.ports.spans import Span

_SECONDS = 2.0


def asked(address: str, pod: str) -> Sequence[Span] | None:
    """Those of one pod (namespace/name); `address` is `host:port`, empty for an agent that serves no pages. None where
    nobody answers, or not with spans.
    """
    if not address:
        return None
    connection = http.client.HTTPConnection(address, timeout=_SECONDS)
    try:
        connection.request("GET", f"/trace?entity={quote(pod, safe='/')}")
        answer = connection.getresponse()
        return msgspec.json.decode(answer.read(), type=list[Span]) if answer.status == http.client.OK else None
    except (OSError, http.client.HTTPException, msgspec.MsgspecError):
        return None
    finally:
        connection.close()
