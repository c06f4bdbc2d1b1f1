# The local .venv, sourced by setup.sh: which Python makes it, which build of PyTorch it gets, and whether it is up to date.
# shellcheck shell=bash

# The stamp names the requirements and the place: a virtual environment does not survive being moved.
venv_key() { (cd "$ROOT" && pwd && sha256sum requirements.txt requirements.lock); }
venv_ready() { [[ -x $PYTHON && -f $VENV_STAMP && $(<"$VENV_STAMP") == "$(venv_key)" ]]; }

install_venv() {
  local python torch clear=--clear
  [[ ! -L $ROOT/.venv ]] || die ".venv is a link, and installing would change what it points to ($(readlink "$ROOT/.venv")).
    Remove the link; ./lattice then makes a .venv of its own"
  python=$(find_python) || exit 1
  rm -f "$VENV_STAMP"
  # Over that of another version both would have packages in it, and the build could take the wrong torch.
  [[ $(python_version "$python") != "$(python_version "$PYTHON")" ]] || clear=''
  logged "$STEP making .venv with $("$python" --version 2>&1)" "$python" -m venv ${clear:+"$clear"} "$ROOT/.venv"
  torch=$(torch_requirement)
  logged "$STEP installing Python packages into .venv: $(torch_size "$torch")" fill_venv "$python" "$torch"
  venv_key >"$VENV_STAMP"
}

# The versions that the pinned torch has wheels for. 3.11 is the one that is tested most.
find_python() {
  local candidate candidates=(python3.11 /usr/bin/python3.11 python3 python3.{12,13,14,10})
  [[ -z ${LATTICE_PYTHON:-} ]] || candidates=("$LATTICE_PYTHON")
  for candidate in "${candidates[@]}"; do
    "$candidate" -c 'import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || continue
    echo "$candidate"
    return
  done
  die "no Python 3.10 to 3.14 with the venv module was found ($(python3 --version 2>&1) is the default here, LATTICE_PYTHON is '${LATTICE_PYTHON:-}').
    torch $(torch_pin) has wheels for those: install one of them, or set LATTICE_PYTHON to its path"
}

python_version() { "$1" -c 'import sys; print(sys.version_info[:2])' 2>/dev/null; }

torch_pin() { sed -n 's/^torch==//p' "$ROOT/requirements.txt"; }

# What to ask pip for: the CPU build where one of the user's package indexes offers it. Without asking, pip would take a
# CUDA build that stands beside it.
torch_requirement() {
  local pin
  pin=$(torch_pin)
  if "$PYTHON" -m pip --disable-pip-version-check --no-input index versions torch 2>/dev/null | grep -qF " $pin+cpu"; then pin+=+cpu; fi
  echo "torch==$pin"
}

# torch_size <requirement>: what is about to be downloaded, for people.
torch_size() {
  if [[ $1 == *+cpu ]]; then
    echo "PyTorch's CPU build, 0.2 GB to download and 0.8 GB on disk"
  elif [[ $(uname -m) == x86_64 ]]; then
    echo "PyTorch, most likely its CUDA build, 2.7 GB to download and 4.8 GB on disk.
    Lattice works with it, and does not use the GPU. For the CPU build, 0.2 GB, interrupt and set PIP_EXTRA_INDEX_URL to
    an index that offers $1+cpu"
  else
    echo "PyTorch is a few hundred MB or more"
  fi
}

# An interrupted installation is repaired in place; where that does not give working imports, from scratch.
fill_venv() {
  install_requirements "$2" || { "$1" -m venv --clear "$ROOT/.venv" && install_requirements "$2"; }
}

install_requirements() {
  pip_install "$ROOT/requirements.txt" && "${PIP[@]}" "$1" && link_package && "$PYTHON" -c 'import numpy, pytest, safetensors, torch'
}

readonly PIP=("$PYTHON" -m pip --disable-pip-version-check --no-input install --progress-bar off)

# pip_install <requirements file>: what its lock lists (tools/lock/lock.py), from files that have the hashes in it. torch is not
# among them, because the builds for CPU and CUDA are different files of the same version; it is asked for by version.
pip_install() { "${PIP[@]}" --require-hashes --no-deps -r "${1%.txt}.lock"; }

# Makes `.venv/bin/python -c "import lattice"` find python/lattice of this tree.
link_package() {
  local site
  site=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') &&
    echo "$ROOT/python" >"$site/lattice-tree.pth"
}
