"""Nodes under attack: the same ones as in the end-to-end tests, and one with pages."""

from tests.attacks.attacked import attacked
from tests.e2e.conftest import node, own_node

__all__ = ["attacked", "node", "own_node"]
