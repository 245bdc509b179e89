"""Validates a Pod like the API server, and reports fields that chronolet does not honour."""
