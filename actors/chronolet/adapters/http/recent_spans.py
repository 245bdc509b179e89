"""Fetch the newest spans of a running agent from its page /trace.

Input: the agent's address, a pod. Output: spans, or None if the agent does not respond, which is not an error: the log
alone also shows the steps. Next: `cli.history.trace`.
"""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from chronolet.ports.spans import Span

_SECONDS = 2.0


def asked(address: str, pod: str) -> Sequence[Span] | None:
    """Return the spans of one pod (namespace/name). `address` is `host:port`, or empty if the agent serves no pages.
    Return None if there is no reply, or if the reply is not a list of spans.
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
