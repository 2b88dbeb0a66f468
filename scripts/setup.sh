#!/usr/bin/env bash
# setup.sh [PACKAGE...]: installs what building and testing need, and the packages named, unless they
# are there already. Needs Debian 12 or later, and root or sudo if something is missing.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  g++ cmake ninja-build ccache                      # build
  libtorch-dev libopenmpi-dev openmpi-bin           # libraries
  libfmt-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
  libvips-dev libtiff-dev pkgconf
  libgtest-dev libgmock-dev libopenslide-dev python3-torch  # tests
  libdnnl-dev                                       # bench-convolutions
  "$@"
)

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "==> packages: all there"
  exit
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo)
  sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } || as_root=(none)
fi
if ! command -v apt-get >/dev/null || [ "${as_root[*]}" = none ]; then
  echo "missing Debian packages, to be installed by an administrator: ${missing[*]}" >&2
  exit 1
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300 "$@"
}
step "packages: update the list" apt-update apt update
step "packages: install ${missing[*]}" apt-install apt install --no-install-recommends "${missing[@]}"
