"""An adoption hook for tests of adoption and of lost logs."""

from chronolet.kernel.step.routing import Router
from chronolet_schemas import kernel
from chronolet_schemas.keys import Shard
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig

CHORE = Shard("chore")


class RecordingHook:
    """An adoption hook that records its calls. It refuses the first `refusals` calls; later ones send a command."""

    def __init__(self, rig: Rig, refusals: int = 0) -> None:
        self.rig = rig
        self.left = refusals
        self.runs: list[str] = []
        self.lost: list[kernel.LogLost | None] = []
        self.owners: list[str] = []

    def __call__(self, router: Router, run: str, lost: kernel.LogLost | None) -> str:
        assert router.shards_of("chore") == (CHORE,)
        self.runs.append(run)
        self.lost.append(lost)
        self.owners.append(self.rig.store.heads([CHORE])[CHORE].token)
        if self.left:
            self.left -= 1
            return "not yet"
        self.rig.send(Assign(request=f"adopt/{run}", key="a"))
        return ""
