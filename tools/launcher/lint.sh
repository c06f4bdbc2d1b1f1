# `./lattice lint`, sourced by commands.sh: every check of style and structure that is not a test of behaviour.
# shellcheck shell=bash

lint() {
  usage_if_asked "Usage: ./lattice lint [--quick] [FILE.cc...]
Checks layers, links and file names in documents (tools/lint), the format of C++, the shell scripts, Python (ruff, mypy) and,
unless --quick is given, C++ by clang-tidy, all of it or the files named. Installs the tools that are missing.
Example: ./lattice lint src/io/json.cc" "$@"
  local quick=0 files=() argument failed=()
  for argument in "$@"; do
    case $argument in
      --quick) quick=1 ;;
      -*) wrong_use "unknown argument '$argument'; lint takes --quick and names of files" ;;
      *) [[ -f $argument ]] && files+=("$(readlink -f -- "$argument")") || wrong_use "there is no file '$argument'" ;;
    esac
  done
  prepare release
  cd "$ROOT" || exit 1
  linter tree "$PYTHON" tools/lint/check_tree.py
  provide clang-format clang-format "the format of C++" && linter clang-format "$ROOT/lattice" format --check
  provide shellcheck shellcheck "shell scripts" && linter shellcheck shellcheck -x lattice tools/git/pre-commit
  provide_python_linters && linter ruff "$PYTHON" -m ruff check --quiet . && linter mypy "$PYTHON" -m mypy
  if ((!quick)) && provide clang-tidy-14 clang-tidy-14 "C++ by clang-tidy"; then linter clang-tidy tidy "${files[@]}"; fi
  ((${#failed[@]} == 0)) || die "lint found something: ${failed[*]}"
  say "lint: nothing found"
}

# linter <name> <command...>: runs a check and remembers, in the caller's `failed`, that it found something.
linter() {
  say "lint: $1"
  "${@:2}" || failed+=("$1")
}

provide_python_linters() {
  "$PYTHON" -c 'import mypy, ruff' 2>/dev/null || locked logged "installing ruff and mypy into .venv" pip_install "$ROOT/requirements-lint.txt"
}

# clang-tidy reads single files by their own commands, and everything by the commands of unity files, a quarter as many;
# precompiled headers are off in both, because they are g++'s.
tidy() {
  local preset=lint-unity
  (($# == 0)) || preset=lint
  configure_preset "$preset" >>"$LOG" 2>&1 && cmake --build --preset "$preset" --target lattice_commit >>"$LOG" 2>&1 ||
    die "configuring the preset $preset failed; see $LOG"
  "$PYTHON" "$ROOT/tools/lint/tidy.py" "$ROOT/build/$preset" "$@"
}
