# Set-up of the tree, sourced by ./lattice: packages (systems.sh), .venv (venv.sh), CMake configure, build. Each step is skipped
# when its result is up to date, and is safe to repeat after an interruption: a step counts as done only once its
# stamp is written. Everything said here goes to stderr; what the tools print goes to build/setup.log.
# shellcheck shell=bash

readonly PYTHON=$ROOT/.venv/bin/python
readonly LOG=$ROOT/build/setup.log
readonly PACKAGES=$ROOT/tools/launcher/packages.txt
readonly VENV_STAMP=$ROOT/.venv/.lattice-stamp
# What a build depends on: the files, other than Python's, in these paths relative to ROOT.
readonly SOURCES=(CMakeLists.txt CMakePresets.json cmake src bench examples fuzz tools/torture/preload tools/launcher/packages.txt .venv/.lattice-stamp)

# shellcheck source=tools/launcher/systems.sh
source "$ROOT/tools/launcher/systems.sh"
# shellcheck source=tools/launcher/venv.sh
source "$ROOT/tools/launcher/venv.sh"

say() { printf '[lattice] %s\n' "$*" >&2; }
die() { say "error: $*" && exit 1; }
wrong_use() { say "error: $*" && exit 2; }

# Bash goes on after Ctrl-C when the program it ran has handled it (pip does). A subshell has to ask again.
stop_on_interrupt() { trap 'exit 130' INT TERM; }
stop_on_interrupt

# prepare <preset> [<target>]: returns when .venv and the target in build/<preset> are up to date, and exits with a
# message otherwise. The target is programs (what users run) or all (tests, too, which take as long again).
prepare() {
  { venv_ready && build_ready "$1" "${2:-programs}"; } || locked run_steps "$1" "${2:-programs}"
  # Tensors in huge pages that stay mapped when freed: a step of training is 3-5 % faster, a scan up to 25 %.
  export GLIBC_TUNABLES=${GLIBC_TUNABLES-glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184}
}

# locked <function...>: one caller at a time changes the tree; others wait for it.
locked() {
  mkdir -p "$ROOT/build" 2>/dev/null
  [[ -w $ROOT && -w $ROOT/build ]] || die "cannot write to $ROOT; run the set-up as the owner of this directory"
  (
    stop_on_interrupt
    if ! flock --nonblock 9; then
      say "another ./lattice is setting up this tree; waiting for it"
      flock 9
    fi
    "$@"
  ) 9>"$ROOT/build/.lock" || exit 1
}

# The steps read STEP, preset, target and missing from here.
run_steps() {
  local STEP preset=$1 target=$2 missing steps=() index
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) && steps+=(install_packages)
  venv_ready || steps+=(install_venv)
  # A fresh .venv means a new path or version of libtorch, so what was configured against the old one is stale.
  if [[ ${#steps[@]} -gt 0 || ! -f $ROOT/build/$preset/build.ninja ]]; then steps+=(configure); fi
  build_ready "$preset" "$target" && [[ ${#steps[@]} -eq 0 ]] && return
  steps+=(build)

  : >"$LOG"
  for index in "${!steps[@]}"; do
    STEP="$((index + 1))/${#steps[@]}"
    "${steps[index]}"
  done
}

install_packages() {
  if [[ $(package_manager) != apt ]]; then
    ask_for_packages "${missing[@]}"
    return
  fi
  if ((EUID != 0)); then
    die "these Debian packages are missing. Install them, then run the same command again:
    $(install_line "${missing[@]}")"
  fi
  logged "$STEP installing ${#missing[@]} Debian package(s): ${missing[*]}" apt_install "${missing[@]}"
}

# apt waits for another installation to end, dpkg by itself does not; it is asked only where one was interrupted.
apt_install() {
  local apt=(apt-get -y -o DPkg::Lock::Timeout=300)
  export DEBIAN_FRONTEND=noninteractive
  "${apt[@]}" update && { "${apt[@]}" install --no-install-recommends "$@" ||
    { dpkg --configure -a && "${apt[@]}" install --no-install-recommends "$@"; }; }
}

# build_ready <preset> <target>: the target, or all of the preset, is newer than every source.
build_ready() {
  local stamp
  for stamp in "$ROOT/build/$1/.stamp-$2" "$ROOT/build/$1/.stamp-all"; do
    [[ -f $stamp ]] || continue
    [[ -n $(cd "$ROOT" && find "${SOURCES[@]}" -type f ! -name '*.py*' -newer "$stamp" -print -quit) ]] || return 0
  done
  return 1
}

configure() { logged "$STEP configuring (preset $preset)" configure_preset "$preset"; }

configure_preset() {
  local cache=$ROOT/build/$1/CMakeCache.txt
  # CMake refuses a build directory that was copied from another place.
  if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$ROOT" "$cache"; then rm -rf "${ROOT:?}/build/$1"; fi
  cd "$ROOT" && cmake --preset "$1"
}

build() { logged "$STEP building ${target/#all/everything} (preset $preset)" build_preset "$preset" "$target"; }

# The stamp carries the time the build began, so that a file edited meanwhile still counts as newer.
build_preset() {
  local stamp=$ROOT/build/$1/.stamp-$2
  touch "$stamp.began" && (cd "$ROOT" && cmake --build --preset "$1" --target "$2" --parallel "$(build_jobs)") &&
    mv "$stamp.began" "$stamp"
}

# A translation unit that includes torch takes up to 2 GB.
build_jobs() {
  local gigabytes jobs
  gigabytes=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  jobs=$(nproc)
  ((jobs > gigabytes / 2)) && jobs=$((gigabytes / 2))
  echo $((jobs > 0 ? jobs : 1))
}

# logged <message> <command...>: runs the command with its output in the log, showing the log's newest line now and
# then. On failure prints the end of the log and exits.
logged() {
  local message=$1 began=$SECONDS status watcher
  shift
  say "$message"
  watch_log 9>&- &
  watcher=$!
  (stop_on_interrupt && "$@") >>"$LOG" 2>&1 </dev/null
  status=$?
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  [[ -t 2 ]] && printf '\r\033[K' >&2
  if ((status != 0)); then
    tail -n 40 "$LOG" >&2
    die "step $message: failed; the whole log is $LOG"
  fi
  ((SECONDS - began < 2)) || say "    done in $((SECONDS - began)) s"
}

# A terminal gets one line that is rewritten every second; a file gets a line every 15 seconds.
watch_log() {
  local began=$SECONDS interval=15 form='[lattice]     %s s: %s\n' never
  [[ -t 2 ]] && interval=1 form='\r\033[K[lattice]     %s s: %s'
  exec {never}<> <(:) # reading it times out: a sleep without a child process that could outlive us
  while kill -0 $$ 2>/dev/null; do
    read -rt "$interval" -u "$never"
    # shellcheck disable=SC2059
    printf "$form" "$((SECONDS - began))" "$(tail -n 1 "$LOG" | tr -d '\r' | cut -c 1-90)" >&2
  done
}
