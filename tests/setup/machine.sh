# Runs a machine in an emulator: a freshly bootstrapped Debian that boots, runs one script and powers off.
#
# Source it from bash, then call `machine_options STEPS "$@"` and `machine PACKAGE...`. The sourcing script defines
# `usage`, and may define `prepare`, which is called with the system's folder before the disk is made. KERNEL: more
# kernel parameters. SECONDS_TO_LIVE: the time limit of the emulator. BOOTS: how often it boots and runs the script; at the end of
# each boot it loses power.
# Input: the last commit of this repository, copied to /root/chronolet in the emulator; the settings with which this
# machine reaches package archives (apt sources, pip's settings, certificates). Output: what the script in the emulator
# prints; status 0 if it succeeds. Needs root, about 4 GB of disk space, and several minutes: the processor is emulated,
# so every Python loop takes 14 times as long.
# shellcheck shell=bash

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

# The packages of a small cloud image, without Docker, Redis, a static busybox or python3-venv.
SMALL=systemd-sysv,linux-image-cloud-amd64,initramfs-tools,udev,kmod,dbus,iproute2,procps,python3,ca-certificates,curl
KERNEL=
SECONDS_TO_LIVE=3600
BOOTS=1
work=

# machine_options DEFAULT_STEPS ARGUMENT...: parses the arguments [--work FOLDER] [STEPS].
machine_options() {
    steps=$1
    shift
    while [[ ${1:-} == -* ]]; do
        case $1 in
            --work)
                work=${2:?--work needs a folder}
                shift 2
                ;;
            -h | --help)
                usage
                exit
                ;;
            *) die "unknown option $1; see --help" ;;
        esac
    done
    steps=${1:-$steps}
    [[ -r $steps ]] || die "$steps: cannot be read"
    [[ $(id -u) == 0 ]] || die "a system can be bootstrapped by root only"
    if [[ -z $work ]]; then
        work=$(mktemp -d /var/tmp/chronolet-machine-XXXXXX)
        trap 'rm -rf "$work"' EXIT
    fi
    mkdir -p "$work"
    system=$work/system
    root=$work/root
}

# machine PACKAGE...: bootstraps a system that also has these packages, boots it, and runs the steps.
machine() {
    install_tools
    bootstrap "$@"
    make_disk
    local number
    for ((number = 0; number < BOOTS; number++)); do
        boot || die "the emulator ended with $?"
        grep -q '^MACHINE-PASSED' "$work/console" || die "a step inside failed; see the console above"
    done
    say "The machine passed"
}

install_tools() {
    local missing=()
    command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86)
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    command -v mke2fs >/dev/null || missing+=(e2fsprogs)
    command -v git >/dev/null || missing+=(git)
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

# Reuses the system of an earlier run if that has the same packages.
bootstrap() {
    local packages sources=/etc/apt/sources.list.d/debian.sources
    packages=$(IFS=,; echo "$SMALL${*:+,$*}")
    [[ $(cat "$work/bootstrapped" 2>/dev/null) != "$packages" ]] || return 0
    say "Bootstrapping Debian into $system"
    rm -rf "$system" "$work/bootstrapped"
    [[ -r $sources ]] || sources=/etc/apt/sources.list
    # shellcheck disable=SC1091
    quietly mmdebstrap --variant=apt --aptopt='APT::Install-Recommends "false"' --include="$packages" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$system" "$sources"
    echo "$packages" >"$work/bootstrapped"
}

# Copies the network settings of this machine, so that apt and pip work in the emulator.
copy_network_settings() {
    cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    [[ ! -r /etc/pip.conf ]] || cp /etc/pip.conf "$root/etc/pip.conf"
    { env | grep -iE '^(https?_proxy|no_proxy|pip_[a-z_]+|ssl_cert_file|requests_ca_bundle)=' || true; } >"$root/etc/default/steps"
    # The emulator's network has a DHCP server, and DNS at 10.0.2.3.
    printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/10-all.network"
    rm -f "$root/etc/resolv.conf"
    echo nameserver 10.0.2.3 >"$root/etc/resolv.conf"
    ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
}

write_unit() {
    echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
    echo fresh >"$root/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 fresh\n' >"$root/etc/hosts"
    install -m 755 "$steps" "$root/usr/local/bin/steps"
    cat >"$root/etc/systemd/system/steps.service" <<'END'
[Unit]
Wants=systemd-networkd-wait-online.service
After=systemd-networkd-wait-online.service
[Service]
Type=oneshot
EnvironmentFile=-/etc/default/steps
Environment=HOME=/root
WorkingDirectory=/root
ExecStart=/bin/bash -c 'if bash /usr/local/bin/steps; then echo MACHINE-PASSED; else echo MACHINE-FAILED $?; fi'
ExecStopPost=/bin/systemctl poweroff -ff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
END
    ln -sf ../steps.service "$root/etc/systemd/system/multi-user.target.wants/steps.service"
    ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
}

prepare() { :; }

make_disk() {
    say "Making the disk"
    rm -rf "$root"
    cp -a "$system" "$root"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb
    # shellcheck disable=SC2031 # lib.sh sets it, in no subshell
    git clone -q --no-hardlinks "$ROOT" "$root/root/chronolet"
    chown -R root:root "$root/root/chronolet"
    prepare "$root"
    copy_network_settings
    write_unit
    cp "$root"/boot/vmlinuz-* "$work/kernel"
    cp "$root"/boot/initrd.img-* "$work/initrd"
    rm -f "$work/disk"
    truncate -s 5G "$work/disk"
    quietly mke2fs -q -t ext4 -d "$root" "$work/disk"
    rm -rf "$root"
}

boot() {
    say "Booting; the console follows"
    timeout "$SECONDS_TO_LIVE" qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -cpu max -smp 2 -m 2048 \
        -nographic -no-reboot -nic user,model=virtio-net-pci \
        -kernel "$work/kernel" -initrd "$work/initrd" \
        -append "root=/dev/vda rw console=ttyS0 $KERNEL quiet" \
        -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" </dev/null | sed -u 's|\r||g' | tee "$work/console"
}
