"""What counts for a container of which no probe has said anything yet. Pure.

Input: nothing. Output: a result for each probe. Next: `prober`, which begins with it; `pod`, which takes what it
has not heard for it. Source: pkg/kubelet/prober/worker.go (newWorker).
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet_schemas.prober import ProbeName, ProbeResult

UNPROBED: Mapping[ProbeName, ProbeResult] = {"Liveness": "success", "Readiness": "failure", "Startup": "unknown"}
