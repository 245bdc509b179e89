"""The validation of a Pod, as the API server does it."""
