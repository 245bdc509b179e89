"""Drivers of the cases of devices.json, by kind.

They run the decider of devices and its helpers; signals and events stand for plugins, requests and the agent's
restarts.
"""

from tests.conformance.drivers.devices import allocation, capacity, checkpoint, choice, status

KINDS = {**capacity.KINDS, **allocation.KINDS, **checkpoint.KINDS, **choice.KINDS, **status.KINDS}
