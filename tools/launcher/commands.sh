# The subcommands that the launcher runs itself, sourced by ./lattice: command_<name> gets the arguments after <name>.
# shellcheck shell=bash

# usage_if_asked <text> [arguments]: prints the text and exits when the first argument asks for help.
usage_if_asked() {
  [[ ${2:-} == -h || ${2:-} == --help ]] || return 0
  printf '%s\n' "$1"
  exit 0
}

command_setup() {
  usage_if_asked "Usage: ./lattice setup
Installs missing Debian packages (as root) and .venv, and builds build/release. Example: ./lattice setup" "$@"
  (($# == 0)) || wrong_use "setup takes no arguments, got '$*'"
  prepare release
  say "ready: build/release and .venv are up to date"
}

command_python() {
  prepare release
  exec "$PYTHON" "$@"
}

command_clean() {
  usage_if_asked "Usage: ./lattice clean [--all]
Removes build/; with --all also .venv. Example: ./lattice clean --all" "$@"
  case "$*" in
    '') rm -rf "${ROOT:?}/build" ;;
    --all) rm -rf "${ROOT:?}/build" "${ROOT:?}/.venv" ;;
    *) wrong_use "clean takes nothing or --all, got '$*'" ;;
  esac
}

command_format() {
  usage_if_asked "Usage: ./lattice format [--check]
Formats the C++ sources in place; with --check changes nothing and fails if one differs. Example: ./lattice format --check" "$@"
  local action
  case "$*" in
    '') action=(-i) ;;
    --check) action=(--dry-run -Werror) ;;
    *) wrong_use "format takes nothing or --check, got '$*'" ;;
  esac
  command -v clang-format >/dev/null || die "clang-format is missing: sudo apt-get install -y clang-format"
  cd "$ROOT" || exit 1
  find src bench tests examples \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 -r clang-format "${action[@]}" || exit 1
}

command_test() {
  usage_if_asked "Usage: ./lattice test [--cpp] [--python] [--asan] [--tsan]
Runs the named suites; without a name, --cpp --python (the sanitizers take a build of their own).
  --cpp     GoogleTest programs of the release build, by ctest
  --python  pytest on tests/
  --asan    the torch-free C++ tests under AddressSanitizer and UBSan
  --tsan    the same under ThreadSanitizer
Example: ./lattice test --asan --tsan" "$@"
  local suites=() suite failed=() began=$SECONDS
  for suite in "$@"; do
    case $suite in
      --cpp) suites+=(release) ;;
      --python | --asan | --tsan) suites+=("${suite#--}") ;;
      *) wrong_use "unknown argument '$suite'; test takes --cpp, --python, --asan and --tsan" ;;
    esac
  done
  ((${#suites[@]})) || suites=(release python)

  prepare release
  for suite in "${suites[@]}"; do
    run_suite "$suite" || failed+=("$suite")
  done
  if ((${#failed[@]})); then
    echo "lattice test: FAILED: ${failed[*]} (ran ${suites[*]} in $((SECONDS - began)) s)"
    exit 1
  fi
  echo "lattice test: passed: ${suites[*]} ($((SECONDS - began)) s)"
}

# A suite is pytest or the ctest preset of that name. A suite without a test is a failure.
run_suite() {
  printf '\n== %s\n' "$1"
  if [[ $1 == python ]]; then
    provide_browser
    (cd "$ROOT" && "$PYTHON" -m pytest -q -rs tests)
    return
  fi
  (prepare "$1" && cd "$ROOT" && ctest --preset "$1" --no-tests=error --parallel "$(nproc)")
}

# The page of the server is tested in a browser: large, and wanted by nothing but those tests, which are skipped
# without it.
provide_browser() {
  command -v chromium >/dev/null && return
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    (logged "installing chromium for the tests of the page" apt_install chromium) && return
  fi
  say "without chromium the tests of the page are skipped: sudo apt-get install -y chromium"
}

command_bench() {
  local benches name=${1:-}
  benches=$(cd "$ROOT/bench" && printf '%s\n' */bench.py | sed -n 's|/bench.py$||; /\*/!p' | paste -sd ' ')
  usage_if_asked "Usage: ./lattice bench <name> [arguments of that bench, see ./lattice bench <name> --help]
There are: $benches
Peers that need more Python packages get them on first use; --peers none does without. Example: ./lattice bench scan --json" "${1:---help}"
  [[ -f $ROOT/bench/$name/bench.py && $name != */* ]] || wrong_use "no bench named '$name'; there are: $benches"
  shift
  prepare release
  if has_peers "$name" && wants_peers "$@" && ! peers_ready; then locked install_peers; fi
  exec "$PYTHON" "$ROOT/bench/$name/bench.py" "$@"
}

has_peers() { grep -q -e '"--peers"' "$ROOT/bench/$1/bench.py"; }

wants_peers() {
  [[ " $* " != *' --peers none '* && " $* " != *' --peers=none '* && " $* " != *' --help '* && " $* " != *' -h '* ]]
}

readonly PEERS_STAMP=$ROOT/.venv/.lattice-bench-stamp
peers_ready() { [[ -f $PEERS_STAMP && ! $ROOT/requirements-bench.txt -nt $PEERS_STAMP && ! $VENV_STAMP -nt $PEERS_STAMP ]]; }

install_peers() {
  peers_ready && return
  logged "installing the benchmark's peers into .venv" pip_install "$ROOT/requirements-bench.txt"
  touch "$PEERS_STAMP"
}

# The program without torch: it starts faster and needs less memory.
command_serve() {
  prepare release
  exec "$ROOT/build/release/bin/lattice-run" serve "$@"
}

command_doctor() {
  # shellcheck source=tools/launcher/doctor.sh
  source "$ROOT/tools/launcher/doctor.sh"
  doctor "$@"
}
