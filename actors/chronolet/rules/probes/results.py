"""The initial results of probes, before their first outcome. Pure.

Input: none. Output: a result for each probe. Next: `prober`, which starts with it; `pod`, which assumes it for results
that it has not received. Source: pkg/kubelet/prober/worker.go (newWorker).
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet_schemas.prober import ProbeName, ProbeResult

UNPROBED: Mapping[ProbeName, ProbeResult] = {"Liveness": "success", "Readiness": "failure", "Startup": "unknown"}
