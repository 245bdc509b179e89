from pathlib import Path

import pytest

from tests.deploy.packages import Machine, build, run


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package of this source tree, built once for all tests."""
    return build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked files of the package."""
    folder = tmp_path_factory.mktemp("unpacked")
    run("dpkg-deb", "-x", package, folder)
    return folder


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without the package."""
    return Machine(tmp_path / "machine")
