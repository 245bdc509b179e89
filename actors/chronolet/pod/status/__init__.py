"""The status of a pod in the Kubernetes API's terms. Pure."""
