"""Validates a Pod as the API server does, and reports fields that chronolet does not honour."""
