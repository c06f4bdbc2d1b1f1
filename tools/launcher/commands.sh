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
Installs missing packages (on Debian as root; elsewhere it prints the line to run) and .venv, and builds build/release. Example: ./lattice setup" "$@"
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
  find src bench tests examples fuzz tools/torture/preload \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 -r clang-format "${action[@]}" || exit 1
}

command_test() {
  usage_if_asked "Usage: ./lattice test [--cpp] [--python] [--fuzz] [--asan] [--tsan] [--memcheck] [--clang] [--arm64] [--web] [--cuda-wheel] [--wheel] [--package] [--newest-transformers] [--reproducible] [--harness ...]
Runs the named suites; without a name, --cpp --python --fuzz (the sanitizers take long).
  --cpp     GoogleTest programs of the release build, by ctest
  --python  pytest on tests/
  --fuzz    libFuzzer on what reads files and requests, with AddressSanitizer; needs clang. 5 s each, or
            LATTICE_FUZZ_SECONDS of the environment; ./lattice fuzz runs them for long
  --asan    the torch-free C++ tests under AddressSanitizer and UBSan
  --tsan    the same under ThreadSanitizer
  --memcheck  the kernels on small random problems, all tails among them, under valgrind: what is read must have been written
  --clang   the same, built by clang++-14
  --arm64   the same, cross-compiled for 64-bit ARM and run by qemu-user, Debian's libraries in build/arm64-root; then
            lattice-run on several ARM CPUs and on an x86-64 without AVX2, compared with this machine
  --web     builds the runtime as WebAssembly (emscripten, 0.85 GB, is installed) and tests exported sites in Chromium
  --cuda-wheel  downloads the CUDA build of PyTorch (0.5 GB) and builds operators and program against it, without a
            GPU or a CUDA toolkit
  --wheel   builds the Python package by pip and uses it from an empty directory, in environments of its own
  --package makes the files of a release (./lattice package) twice, compares and uses them; takes half an hour on two cores
  --newest-transformers  the tests of lattice.hf with the newest transformers, in an environment of its own (1 GB)
  --reproducible  builds lattice-run twice, in directories of its own and without ccache, and compares the bytes
  --harness compares ./lattice eval tasks, the server and lattice.hf with lm-evaluation-harness, request by request;
            comes last, and what follows are its arguments (--harness --help). In an environment of its own (2 GB), or
            in that of the interpreter LATTICE_CLIENTS_PYTHON
Example: ./lattice test --asan --tsan" "$@"
  local suites=() suite failed=() began=$SECONDS
  local harness_arguments=()
  while (($#)); do
    suite=$1 && shift
    case $suite in
      --cpp) suites+=(release) ;;
      --python | --fuzz | --asan | --tsan | --memcheck | --clang | --arm64 | --web | --cuda-wheel | --wheel | --package | --newest-transformers | --reproducible) suites+=("${suite#--}") ;;
      --harness) suites+=(harness) harness_arguments=("$@") && break ;;
      *) wrong_use "unknown argument '$suite'; test takes --cpp, --python, --fuzz, --asan, --tsan, --memcheck, --clang, --arm64, --web, --cuda-wheel, --wheel,
    --package, --newest-transformers, --reproducible and --harness" ;;
    esac
  done
  ((${#suites[@]})) || suites=(release python fuzz)

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
    prepare release
    provide chromium chromium "the tests of the page"
    provide qemu-x86_64 qemu-user "the test of a CPU without AVX2"
    triton_ready || (locked install_triton) || say "without Triton, the tests of the GPU kernels will be skipped"
    hub_ready || (locked install_hub) || say "without transformers and peft, the tests of lattice.hf will be skipped"
    # A file's tests share what they train and serve, so files go to the workers whole. Threads that wait must not spin:
    # there are as many workers as cores.
    (cd "$ROOT" && OMP_WAIT_POLICY=passive "$PYTHON" -m pytest -q -rs -n "$(test_workers)" --dist loadfile tests)
    return
  fi
  if [[ $1 == cuda-wheel ]]; then
    prepare release
    build_with_cuda_wheel
    return
  fi
  if [[ $1 == wheel ]]; then
    prepare release
    "$PYTHON" "$ROOT/tools/wheel/check.py"
    return
  fi
  if [[ $1 == package ]]; then
    prepare release lattice_run
    provide lintian lintian "the check of Debian's policy"
    LATTICE_JOBS=$(build_jobs) "$PYTHON" "$ROOT/tools/package/check.py"
    return
  fi
  if [[ $1 == memcheck ]]; then
    prepare release lattice_differential
    provide valgrind valgrind "memcheck" || return
    valgrind --quiet --error-exitcode=9 "$ROOT/build/release/bin/lattice-differential" --problems 300
    return
  fi
  if [[ $1 == arm64 ]]; then
    # shellcheck source=tools/launcher/arm64.sh
    source "$ROOT/tools/launcher/arm64.sh"
    test_arm64
    return
  fi
  if [[ $1 == web ]]; then
    # shellcheck source=tools/launcher/web.sh
    source "$ROOT/tools/launcher/web.sh"
    test_web
    return
  fi
  if [[ $1 == newest-transformers || $1 == harness || $1 == reproducible ]]; then
    prepare release
    "test_${1//-/_}"
    return
  fi
  if [[ $1 == clang ]]; then
    command -v clang++-14 >/dev/null || install_for clang-14 "the tests of a build by clang" || return
  fi
  local target=all
  if [[ $1 == fuzz ]]; then
    links_fuzzers || install_for "clang-14 libclang-rt-14-dev" fuzzing || return 0
    target=fuzzers
  fi
  (prepare "$1" $target && cd "$ROOT" && ctest --preset "$1" --no-tests=error --parallel "$(nproc)")
}

# At most four: a worker that imports torch and serves models takes up to 2 GB.
test_workers() {
  local cores
  cores=$(nproc)
  echo $((cores < 4 ? cores : 4))
}

# own_environment <name> [<arguments of pip install>...]: build/<name>, with the pinned torch and these. The newest of what
# has no pin is looked for every time.
own_environment() {
  local folder=$ROOT/build/$1
  [[ -x $folder/bin/python ]] || "$PYTHON" -m venv "$folder" || return
  "$folder/bin/python" -m pip --disable-pip-version-check --no-input install --progress-bar off -q -U "$(torch_requirement)" "${@:2}"
}

test_newest_transformers() {
  local python=$ROOT/build/newest-transformers/bin/python
  own_environment newest-transformers -r "$ROOT/requirements.txt" transformers accelerate peft sentencepiece &&
    "$python" -c 'import peft, transformers; print(f"transformers {transformers.__version__}, peft {peft.__version__}")' &&
    (cd "$ROOT" && PYTHONPATH=$ROOT/python OMP_WAIT_POLICY=passive "$python" -m pytest -q -rs tests/test_hf_*.py)
}

# Two builds of the same commit, at places whose names have different lengths.
test_reproducible() {
  local folder builds=("$ROOT/build/reproducible/a" "$ROOT/build/reproducible/another-place")
  rm -rf "${ROOT:?}/build/reproducible"
  for folder in "${builds[@]}"; do
    (cd "$ROOT" && cmake --preset release -B "$folder" -DLATTICE_TORCH=OFF -DLATTICE_TESTS=OFF >/dev/null) &&
      CCACHE_DISABLE=1 cmake --build "$folder" --target lattice_run lattice_c --parallel "$(build_jobs)" || return
  done
  local file
  for file in bin/lattice-run lib/liblattice.so; do
    sha256sum "${builds[@]/%//$file}"
    cmp "${builds[@]/%//$file}" || return
  done
}

test_harness() {
  local python=${LATTICE_CLIENTS_PYTHON:-$ROOT/build/harness/bin/python}
  if [[ -z ${LATTICE_CLIENTS_PYTHON:-} ]]; then
    own_environment harness -r "$ROOT/requirements-clients.txt" -r "$ROOT/requirements-hf.txt" || return
  fi
  LATTICE_CLIENTS_PYTHON=$python "$PYTHON" "$ROOT/tools/harness" "${harness_arguments[@]}"
}

# "===" takes the version without "+cpu" behind it: on x86-64 that is the CUDA build. Its libraries for the GPU are not
# installed, so nothing is run.
build_with_cuda_wheel() {
  local folder=$ROOT/build/cuda-wheel release=$ROOT/build/cuda-wheel/release
  if [[ ! -f $folder/torch/version.py ]]; then
    "$PYTHON" -m pip download --no-deps --only-binary=:all: --progress-bar off -d "$folder" "torch===$(torch_pin)" &&
      "$PYTHON" -m zipfile -e "$folder"/torch-*.whl "$folder" || return
  fi
  [[ -f $folder/torch/lib/libtorch_cuda.so ]] || { say "error: the torch in $folder is no CUDA build" && return 1; }
  (cd "$ROOT" && cmake --preset release -B "$release" -DLATTICE_TORCH_DIR="$folder/torch" -DLATTICE_TESTS=OFF) &&
    cmake --build "$release" --target lattice_ops lattice_cli --parallel "$(build_jobs)"
}

# The GPU kernels are tested without a GPU, but not without their compiler.
triton_ready() { "$PYTHON" -c 'import triton' 2>/dev/null; }
install_triton() { logged "installing Triton for the tests of the GPU kernels" pip_install "$ROOT/requirements-gpu.txt"; }

hub_ready() { "$PYTHON" -c 'import sys; from importlib.util import find_spec; sys.exit(not (find_spec("peft") and find_spec("transformers")))'; }
install_hub() { logged "installing transformers and peft for the tests of lattice.hf" pip_install "$ROOT/requirements-hf.txt"; }

# provide <program> <packages> <use>: installs what only some tests want. Without it and without the right to
# install it, says that they are skipped.
provide() { command -v "$1" >/dev/null || install_for "$2" "$3"; }

# Debian has the compiler and the libraries of its sanitizers in different packages.
links_fuzzers() {
  clang++-14 -x c++ -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null <<<'extern "C" int LLVMFuzzerTestOneInput() { return 0; }'
}

install_for() {
  if ((EUID == 0)) && [[ $(package_manager) == apt ]]; then
    # shellcheck disable=SC2086
    (logged "installing $1 for $2" apt_install $1) && return
  fi
  say "without $1, $2 will be skipped. On Debian: sudo apt-get install -y $1"
  return 1
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
  exec -a ./lattice "$ROOT/build/release/bin/lattice-run" serve "$@"
}

# The program's own demo, or a chat with a real model.
command_demo() {
  prepare release
  if [[ ${1:-} == --chat ]]; then exec "$PYTHON" "$ROOT/tools/chat/chat.py" "${@:2}"; fi
  exec "$ROOT/build/release/bin/lattice" demo "$@"
}

command_torture() {
  usage_if_asked "Usage: ./lattice torture serve|sessions|ranks|train|pack|reproduce [--quick] [more, see ./lattice torture serve --help]
serve: attacks a server on loopback and checks what it promises meanwhile. sessions: kills, pauses and spoils replicas, Redis
and disks while sessions are in use. ranks: kills, stops and cuts off the ranks of a training. train, pack, reproduce: kills the
program and makes its disk fail, 1,000 times and more, and compares the result with that of an undisturbed one.
Example: ./lattice torture serve --quick" "${1:---help}"
  prepare release
  exec "$PYTHON" "$ROOT/tools/torture" "$@"
}

# The fuzz targets, or with --differential the program that compares kernels; both build on first use.
command_fuzz() {
  usage_if_asked "Usage: ./lattice fuzz [--minutes N] [--only TARGET] [--jobs J] [--slice SECONDS] [--no-store] [--reset]
       ./lattice fuzz --differential [--problems N]
       ./lattice fuzz --table
Runs the libFuzzer targets of fuzz/ in turn for N minutes (default 10), goes on where the last call ended, and stores a small
corpus in fuzz/corpus and an account in results/reliability/fuzzing.json. What it finds is shown with a command that repeats it.
--differential: N more random problems (default 10,000) through every instruction set of this machine and a float64 reference.
--table: the account as a table. docs/fuzzing.md says more. Example: ./lattice fuzz --minutes 30 --only gguf" "$@"
  case " $* " in
    *' --table '*) prepare release ;;
    *' --differential '*) prepare release lattice_differential ;;
    *)
      links_fuzzers || install_for "clang-14 libclang-rt-14-dev" fuzzing || exit 1
      prepare fuzz fuzzers
      ;;
  esac
  exec "$PYTHON" "$ROOT/tools/fuzz" "$@"
}

command_sbom() {
  prepare release
  exec "$PYTHON" "$ROOT/tools/sbom/sbom.py" "$@"
}

command_export-web() {
  # shellcheck source=tools/launcher/web.sh
  source "$ROOT/tools/launcher/web.sh"
  if [[ " $* " == *' --help '* || " $* " == *' -h '* ]]; then prepare release; else prepare_web; fi
  exec "$PYTHON" "$ROOT/tools/web" "$@"
}

command_plan() {
  prepare release
  exec "$PYTHON" "$ROOT/tools/plan" "$@"
}

command_doctor() {
  # shellcheck source=tools/launcher/doctor.sh
  source "$ROOT/tools/launcher/doctor.sh"
  doctor "$@"
}

command_package() {
  # shellcheck source=tools/launcher/package.sh
  source "$ROOT/tools/launcher/package.sh"
  package "$@"
}

command_lint() {
  # shellcheck source=tools/launcher/lint.sh
  source "$ROOT/tools/launcher/lint.sh"
  lint "$@"
}
