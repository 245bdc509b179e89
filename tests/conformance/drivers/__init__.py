"""Which driver runs which kind of case, by (subsystem, kind)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.conformance.drivers import events, pleg, pod_lifecycle, probes, qos_cgroups
from tests.conformance.outcome import Case

Driver = Callable[[Case], Iterable[str]]

DRIVERS: Mapping[tuple[str, str], Driver] = {
    **{("events", kind): driver for kind, driver in events.KINDS.items()},
    **{("pod_lifecycle", kind): driver for kind, driver in pod_lifecycle.KINDS.items()},
    **{("qos_cgroups", kind): driver for kind, driver in qos_cgroups.KINDS.items()},
    **{("pleg", kind): driver for kind, driver in pleg.KINDS.items()},
    **{("probes", kind): driver for kind, driver in probes.KINDS.items()},
}
