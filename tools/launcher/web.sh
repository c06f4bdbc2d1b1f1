# `./lattice export-web` and `./lattice test --web`, sourced by commands.sh: the runtime as WebAssembly, built by Debian's
# emscripten into build/web.
# shellcheck shell=bash

prepare_web() {
  command -v emcc >/dev/null || (locked install_emscripten) || exit
  prepare release
  prepare web lattice_web_module
}

install_emscripten() {
  command -v emcc >/dev/null && return
  ((EUID == 0)) && command -v apt-get >/dev/null ||
    die "the runtime is compiled for browsers by emscripten, which is missing. Install it (112 MB to download, 0.85 GB on disk), then
    run the same command again: sudo apt-get install -y --no-install-recommends emscripten"
  logged "installing emscripten (112 MB to download, 0.85 GB on disk; only for models in web pages)" apt_install emscripten
}

test_web() {
  prepare_web
  provide chromium chromium "the tests in a browser" || return
  (cd "$ROOT" && "$PYTHON" -m pytest -q -rs tests/test_web.py tests/test_web_bits.py tests/test_web_file.py)
}
