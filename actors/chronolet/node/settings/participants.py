"""The kinds that take part in the admission of a pod. A separate module, because importing it loads the pod
actor.

Input: none. Output: `ADMISSION`. Next: `table`; `settings`, for the default.
"""

from __future__ import annotations

from chronolet.pod.admission.admission import NEEDS
from chronolet.pod.planning.probing import KIND as PROBER

ADMISSION = (*NEEDS, PROBER)
"""The kinds that may take part in a pod's admission: those from which it requests resources before it starts, and the
prober.
"""
