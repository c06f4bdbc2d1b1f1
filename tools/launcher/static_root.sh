# The static libraries that Debian does not have, sourced by package.sh: Highway and SentencePiece, built from Debian's sources of
# the very versions that are installed, into build/static-root. Everything else has a static library in its -dev package.
# shellcheck shell=bash

readonly STATIC_ROOT=$ROOT/build/static-root

static_root_ready() { [[ -f $STATIC_ROOT/.complete ]]; }

make_static_root() {
  local work=$STATIC_ROOT/work
  rm -rf "${STATIC_ROOT:?}"
  mkdir -p "$work" && cd "$work" && fetch_sources highway libhwy-dev && fetch_sources sentencepiece libsentencepiece-dev &&
    build_library highway hwy -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_EXAMPLES=OFF -DBUILD_TESTING=OFF -DBUILD_SHARED_LIBS=OFF &&
    build_library sentencepiece 'sentencepiece-static sentencepiece_train-static' -DSPM_ENABLE_SHARED=OFF -DSPM_ENABLE_TCMALLOC=OFF || return
  cd "$ROOT" && rm -rf "$work" && touch "$STATIC_ROOT/.complete"
}

# fetch_sources <source package> <installed package>: unpacks the sources of the installed version into ./<source package>, with
# Debian's patches, because Debian's headers are used: they give SentencePiece another string_view than upstream has. apt checks
# signatures; like for arm64 (arm64.sh), it works on lists of its own.
fetch_sources() {
  local apt=$PWD/apt version options file
  # A package may be installed for several architectures.
  version=$(dpkg-query -W -f '${source:Version}\n' "$2" | head -n 1) && [[ -n $version ]] || return
  options=(-q -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Etc::sourcelist=/dev/null
    -o Dir::Etc::sourceparts="$apt/etc" -o APT::Sandbox::User= -o Debug::NoLocking=1)
  if [[ ! -d $apt ]]; then
    mkdir -p "$apt"/{lists,etc} && : >"$apt/status" || return
    for file in /etc/apt/sources.list.d/*.sources; do
      [[ ! -f $file ]] || sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$apt/etc/${file##*/}"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
      [[ ! -f $file ]] || sed -nE 's/^deb /deb-src /p' "$file" >"$apt/etc/${file##*/}"
    done
    apt-get "${options[@]}" update || return
  fi
  apt-get "${options[@]}" source --download-only "$1=$version" && mkdir "$1" && tar -xf "$1"_*.orig.tar.* -C "$1" --strip-components=1 &&
    tar -xf "$1"_*.debian.tar.* -C "$1" && apply_patches "$1"
}

# In the order of debian/patches/series, where there is one; without the patch by which Debian leaves out what is built here.
apply_patches() {
  local name
  [[ -f $1/debian/patches/series ]] || return 0
  while read -r name _; do
    case $name in
      '' | '#'* | disable-static-library.patch) ;;
      *) patch --quiet -d "$1" -p1 <"$1/debian/patches/$name" || return ;;
    esac
  done <"$1/debian/patches/series"
}

# build_library <folder> <targets> <options...>: the same bytes whatever the directory is called. Headers are the system's, of the
# same version.
build_library() {
  local map="-ffile-prefix-map=$PWD=."
  # shellcheck disable=SC2086
  cmake -G Ninja -S "$1" -B "$1/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_FLAGS="$map" \
    -DCMAKE_CXX_FLAGS="$map" "${@:3}" && cmake --build "$1/build" --parallel "$(build_jobs)" --target $2 &&
    mkdir -p "$STATIC_ROOT/lib" && find "$1/build" -name '*.a' -exec cp -t "$STATIC_ROOT/lib" {} +
}
