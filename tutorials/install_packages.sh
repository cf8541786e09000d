#!/usr/bin/env bash
# Installs what building needs and is not there yet (Debian 12 or later, with apt); does nothing when
# all is present. usage: install_packages.sh [--tests | --benchmarks]
#   --tests        also what the tests need, and a Python environment in .venv
#   --benchmarks   also what tests/performance needs, and matplotlib in .venv
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(g++ cmake ninja-build ccache mold pkg-config llvm-22-dev liblld-22-dev zlib1g-dev libzstd-dev
          protobuf-compiler libprotobuf-dev nlohmann-json3-dev libcli11-dev libzip-dev libxxhash-dev libxgboost-dev
          libtomlplusplus-dev)
python_packages=()
case "${1:-}" in
  "") ;;
  --tests)
    packages+=(libgtest-dev libgmock-dev python3-venv
               libopenmpi-dev openmpi-bin libmpich-dev mpich libgloo-dev etcd-server)
    python_packages=(numpy onnx==1.23.2 onnxruntime==1.31.1) ;;
  --benchmarks)
    packages+=(libgtest-dev libgmock-dev libbenchmark-dev python3-venv)
    python_packages=(matplotlib==3.10.7) ;;
  *) echo "usage: install_packages.sh [--tests | --benchmarks]" >&2; exit 2 ;;
esac

fail() { printf 'install_packages: %s\n' "$@" >&2; exit 1; }

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing_packages() {
  local p
  for p in "${packages[@]}"; do is_installed "$p" || echo "$p"; done
}

check_distribution() {
  local id='' version=''
  if [ -r /etc/os-release ]; then
    id=$(. /etc/os-release; echo "${ID:-}")
    version=$(. /etc/os-release; echo "${VERSION_ID:-}")
  fi
  # Debian testing and unstable have no version number.
  [ "$id" = debian ] && [ "${version%%.*}" != 10 ] && [ "${version%%.*}" != 11 ] ||
    fail "this script knows Debian 12 or later only, and this is '${id:-unknown} ${version}'" \
         "install these yourself, then run again: ${packages[*]}"
}

as_root=()
need_root() {
  [ "$(id -u)" -eq 0 ] && return
  command -v sudo >/dev/null ||
    fail "not root and there is no sudo; run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
}

apt_install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" >"$log" 2>&1
}

command -v dpkg-query >/dev/null || check_distribution
mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
  check_distribution
  need_root
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  echo "Installing with apt (one to three minutes): ${missing[*]}"
  if ! apt_install; then
    echo "Refreshing the package lists"
    "${as_root[@]}" apt-get update -q >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get update failed"; }
    if ! apt_install; then
      tail -n 20 "$log" >&2
      fail "apt-get install failed (above)" \
           "LLVM 22 comes from Debian's security suite (bookworm-security), which the default sources contain"
    fi
  fi
fi

if [ "${#python_packages[@]}" -gt 0 ]; then
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "Making the Python environment .venv"
    python3 -m venv .venv
  fi
  have=$(.venv/bin/python -m pip list --format=freeze --disable-pip-version-check)
  for p in "${python_packages[@]}"; do
    case $'\n'"$have" in
      *$'\n'"$p"$'\n'* | *$'\n'"$p"==* | *$'\n'"$p") ;;
      *) echo "Installing into .venv: ${python_packages[*]}"
         .venv/bin/python -m pip install -q --disable-pip-version-check "${python_packages[@]}"
         break ;;
    esac
  done
fi
