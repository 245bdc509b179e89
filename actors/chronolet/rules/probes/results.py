"""The initial results of probes, before their first outcome. Pure.

Input: none. Output: a result for each probe. Next: `prober`, whose probes start with these results; `pod`, which
assumes them until it receives others. Source: pkg/kubelet/prober/worker.go (newWorker).
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet_schemas.prober import ProbeName, ProbeResult

UNPROBED: Mapping[ProbeName, ProbeResult] = {"Liveness": "success", "Readiness": "failure", "Startup": "unknown"}
