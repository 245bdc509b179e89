"""Maps the kinds of case in probes.json to their drivers."""

from tests.conformance.drivers.probes import decisions, handlers

KINDS = {**decisions.KINDS, **handlers.KINDS}
