"""Fixtures for attacks: the nodes of the end-to-end tests, a node with HTTP pages, and stores with long time-outs."""

from tests.attacks.attacked import attacked
from tests.e2e.conftest import node, own_node
from tests.support.patience import patient_stores

__all__ = ["attacked", "node", "own_node", "patient_stores"]
