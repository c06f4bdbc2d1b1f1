# `./lattice doctor`, sourced by commands.sh: what this machine has and what Lattice makes of it. Changes nothing and
# needs no set-up, so that it can say why a set-up does not work.
# shellcheck shell=bash

doctor() {
  usage_if_asked "Usage: ./lattice doctor [--json]
Shows the CPU, instruction sets, compiler and torch in use; fails when something needed is missing.
Example: ./lattice doctor --json" "$@"
  local names=() values=() problems=() available isa missing
  [[ $# -eq 0 || $* == --json ]] || wrong_use "doctor takes nothing or --json, got '$*'"

  mapfile -t available < <(available_isas)
  isa=${LATTICE_ISA:-${available[-1]}}
  [[ " ${available[*]} " == *" $isa "* ]] || problems+=("LATTICE_ISA is '$isa', but this CPU can run: ${available[*]}")
  missing=$(missing_packages | paste -sd ' ')
  [[ -z $missing ]] || problems+=("missing packages: $missing; $(install_line "$missing")")

  fact version "$("$ROOT/lattice" --version)"
  fact system "$(os_name), Linux $(uname -r), $(uname -m)"
  fact cpu "$(cpu_field 'model name')"
  fact cores "$(nproc)"
  fact memory_gib "$(awk '/^MemTotal/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo)"
  fact isa_available "${available[*]}"
  fact isa_in_effect "$isa"
  fact cpu_extensions "$(cpu_extensions)"
  fact compiler "$(first_line c++ --version)"
  fact cmake "$(first_line cmake --version)"
  fact python "$(first_line "$PYTHON" --version)"
  fact torch "$(torch_version)"
  fact packages "${missing:+missing: }${missing:-all present}"
  fact set_up "$(state_of venv_ready)"
  fact build "$(state_of build_ready release programs)"

  if [[ $* == --json ]]; then print_json; else print_table; fi
  ((${#problems[@]} == 0)) || exit 1
}

fact() { names+=("$1") values+=("${2:-unknown}"); }
state_of() { if "$@" 2>/dev/null; then echo "up to date"; else echo "not up to date; the next ./lattice call sees to it"; fi; }
first_line() { if command -v "$1" >/dev/null; then "$@" 2>&1 | head -n 1; else echo "not found"; fi; }
cpu_field() { sed -nE "s/^$1[[:space:]]*: //p" /proc/cpuinfo | head -n 1; }
os_name() { os_release PRETTY_NAME; }

# Of x86-64, or of ARM.
has_flags() {
  local flag flags
  flags=" $(cpu_field flags) $(cpu_field Features) "
  for flag in "$@"; do [[ $flags == *" $flag "* ]] || return 1; done
}

# The same condition as kernels::AvailableIsas, from what the kernel reports.
available_isas() {
  if [[ $(uname -m) == aarch64 ]]; then
    echo neon
    has_flags asimddp || return
    echo neon-dot
    has_flags bf16 i8mm && echo neon-bf16
    return
  fi
  echo scalar
  has_flags ssse3 sse4_1 sse4_2 aes pclmulqdq || return
  echo sse4
  has_flags avx2 fma f16c bmi1 bmi2 abm || return
  echo avx2
  has_flags avx512f avx512cd avx512bw avx512dq avx512vl && echo avx512
}

cpu_extensions() {
  local name found=()
  for name in sse4_2 avx2 fma avx512f avx512_bf16 avx512_vnni avx_vnni amx_bf16 amx_int8 asimddp bf16 i8mm; do
    has_flags "$name" && found+=("$name")
  done
  echo "${found[*]:-none of those that Lattice knows}"
}

torch_version() {
  local found=("$ROOT"/.venv/lib/python*/site-packages/torch/version.py)
  [[ -f ${found[0]} ]] || { echo "not installed" && return; }
  sed -nE "s/^__version__ = '(.*)'/\1/p" "${found[0]}"
}

print_table() {
  local i
  for i in "${!names[@]}"; do printf '%-15s %s\n' "${names[i]}" "${values[i]}"; done
  for i in "${!problems[@]}"; do printf 'PROBLEM         %s\n' "${problems[i]}"; done
}

print_json() {
  local i separator=''
  printf '{'
  for i in "${!names[@]}"; do
    printf '%s"%s": %s' "$separator" "${names[i]}" "$(json_value "${values[i]}")"
    separator=', '
  done
  printf ', "problems": ['
  separator=''
  for i in "${!problems[@]}"; do
    printf '%s%s' "$separator" "$(json_value "${problems[i]}")"
    separator=', '
  done
  printf ']}\n'
}

json_value() {
  local text=${1//\\/\\\\}
  if [[ $text =~ ^[0-9]+(\.[0-9]+)?$ ]]; then echo "$text"; else printf '"%s"' "${text//\"/\\\"}"; fi
}
