"""Maps the kinds of case in devices.json to their drivers.

The drivers run the decider of devices and its helpers. Signals and events take the place of plugins, requests and
restarts of the agent.
"""

from tests.conformance.drivers.devices import allocation, capacity, checkpoint, choice, status

KINDS = {**capacity.KINDS, **allocation.KINDS, **checkpoint.KINDS, **choice.KINDS, **status.KINDS}
