"""The disk reserve: real blocks, which are released when the disk is full."""

from pathlib import Path

from chronolet.adapters.redis_server.disk_reserve import DiskReserve


def test_a_disk_reserve_takes_real_blocks_and_gives_them_back(tmp_path: Path) -> None:
    reserve = DiskReserve(tmp_path / "new" / "ballast", 3 << 20)
    assert not reserve.present()
    assert reserve.release() == 0
    assert reserve.restore()
    assert reserve.present()
    assert reserve.path.stat().st_blocks * 512 >= 3 << 20
    assert reserve.restore()
    assert reserve.release() >= 3 << 20
    assert not reserve.present()


def test_a_disk_reserve_larger_than_the_free_space_is_not_made(tmp_path: Path) -> None:
    assert not DiskReserve(tmp_path / "ballast", 1 << 60).restore()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_reserve_that_is_too_small_is_rewritten(tmp_path: Path) -> None:
    (tmp_path / "ballast").write_bytes(b"small")
    reserve = DiskReserve(tmp_path / "ballast", 1 << 20)
    assert not reserve.present()
    assert reserve.restore()
    assert reserve.present()
