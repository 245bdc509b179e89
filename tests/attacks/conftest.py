"""Nodes under attack: the same ones as in the end-to-end tests, and one with pages; stores that wait."""

from tests.attacks.attacked import attacked
from tests.e2e.conftest import node, own_node
from tests.support.patience import patient_stores

__all__ = ["attacked", "node", "own_node", "patient_stores"]
