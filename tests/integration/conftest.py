"""A fixture for all integration tests: the stores that tests open wait for a server that is stalled for a while."""

from tests.support.patience import patient_stores

__all__ = ["patient_stores"]
