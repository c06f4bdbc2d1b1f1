# `./lattice test --arm64`, sourced by commands.sh: the torch-free layers built for 64-bit ARM by Debian's cross compiler,
# their tests run by qemu-user, and lattice-run compared with that of this machine on several CPUs (tools/emulated).
# shellcheck shell=bash

readonly ARM64_ROOT=$ROOT/build/arm64-root
readonly ARM64_PACKAGES=(libc6-dev libstdc++6 libhwy-dev libgtest-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
  libsentencepiece-dev libcpp-httplib-dev libhiredis-dev libssl-dev zlib1g-dev libzstd-dev liblzma-dev)

test_arm64() {
  command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null ||
    install_for "g++-aarch64-linux-gnu qemu-user" "the tests for 64-bit ARM" || return
  [[ -f $ARM64_ROOT/.complete ]] || (logged "fetching Debian's libraries for arm64 into build/arm64-root" fetch_arm64_root) || return
  # A program takes ten to thirty times as long by emulation.
  (prepare release lattice_run && prepare arm64 all && cd "$ROOT" && ctest --preset arm64 --no-tests=error --timeout 3600 --parallel "$(nproc)" &&
    "$PYTHON" tools/emulated)
}

# The libraries go into a directory of their own, because Debian's sentencepiece for arm64 replaces that of this machine.
# apt works on lists and a record of installed packages of its own there: it needs no root and leaves the system alone.
fetch_arm64_root() {
  local apt=$ARM64_ROOT/apt options
  rm -rf "${ARM64_ROOT:?}"
  mkdir -p "$apt"/{lists,cache/archives,etc} && : >"$apt/status" || return
  options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Dir::State="$apt"
    -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1)
  apt-get "${options[@]}" update &&
    apt-get "${options[@]}" install --yes --download-only --no-install-recommends "${ARM64_PACKAGES[@]}" || return
  local package
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$ARM64_ROOT" || return; done
  rm -rf "$apt"
  touch "$ARM64_ROOT/.complete"
}
