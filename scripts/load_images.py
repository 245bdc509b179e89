"""Imports the local images into Docker; called by `scripts/images` and `scripts/run` with the venv's Python.

In: the Docker host (default: where DOCKER_HOST says). Out: one line an image. One that is there is left alone, unless
--force: an import always makes a new image, and the old one would stay behind without a name.
"""

import argparse

import docker
from docker.errors import ImageNotFound

from chronolet.adapters.images import ALL, LocalImage, load


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/images", description="Make the local images from busybox.")
    parser.add_argument("--host", metavar="unix:///PATH", help="the Docker Engine; default: DOCKER_HOST")
    parser.add_argument("--force", action="store_true", help="import again what is there already")
    options = parser.parse_args()
    client = docker.DockerClient(base_url=options.host) if options.host else docker.from_env()
    wanted = [image for image in ALL if options.force or not _has(client.api, image)]
    load(client.api, wanted)
    for image in ALL:
        print(f"{image.reference}: {'made' if image in wanted else 'is there'}")


def _has(api: docker.APIClient, image: LocalImage) -> bool:
    try:
        api.inspect_image(image.reference)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return False
    return True


if __name__ == "__main__":
    main()
