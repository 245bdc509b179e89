"""Maps (subsystem, kind) to the driver of that kind of case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.conformance.drivers import container_gc, devices, events, image_gc, pleg, pod_lifecycle, probes, qos_cgroups
from tests.conformance.outcome import Case

Driver = Callable[[Case], Iterable[str]]

DRIVERS: Mapping[tuple[str, str], Driver] = {
    **{("devices", kind): driver for kind, driver in devices.KINDS.items()},
    **{("events", kind): driver for kind, driver in events.KINDS.items()},
    **{("pod_lifecycle", kind): driver for kind, driver in pod_lifecycle.KINDS.items()},
    **{("qos_cgroups", kind): driver for kind, driver in qos_cgroups.KINDS.items()},
    **{("pleg", kind): driver for kind, driver in pleg.KINDS.items()},
    **{("probes", kind): driver for kind, driver in probes.KINDS.items()},
    **{("container_gc", kind): driver for kind, driver in container_gc.KINDS.items()},
    **{("image_gc", kind): driver for kind, driver in image_gc.KINDS.items()},
}
