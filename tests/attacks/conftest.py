"""Nodes under attack: the same ones as in the end-to-end tests."""

from tests.e2e.conftest import node, own_node

__all__ = ["node", "own_node"]
