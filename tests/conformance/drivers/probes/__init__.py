"""Drivers of the cases of probes.json, by kind."""

from tests.conformance.drivers.probes import decisions, handlers

KINDS = {**decisions.KINDS, **handlers.KINDS}
