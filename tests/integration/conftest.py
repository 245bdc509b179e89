"""What all these tests share: their own stores wait for a server that stands still for a while."""

from tests.support.patience import patient_stores

__all__ = ["patient_stores"]
