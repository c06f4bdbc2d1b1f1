# `./lattice package`, sourced by commands.sh: what a release consists of, the same bytes whenever and wherever it is made.
# shellcheck shell=bash

# shellcheck source=tools/launcher/static_root.sh
source "$ROOT/tools/launcher/static_root.sh"

package() {
  usage_if_asked "Usage: ./lattice package [--source] [--deb] [--static] [--out DIRECTORY]
Writes the files of a release into DIRECTORY (build/dist), those named or all of them:
  --source  lattice-VERSION.tar.gz, the files of the commit
  --deb     lattice-run_VERSION_ARCHITECTURE.deb, a package of the program that runs and serves models
  --static  lattice-run-VERSION-linux-ARCHITECTURE, that program as one file that needs no libraries; Debian's sources of
            Highway and SentencePiece are downloaded and built for it
and SHA256SUMS. The commit decides every byte: made again, they have the same sums. Needs Debian.
Example: ./lattice package --static --out /tmp/release" "$@"
  local wanted=() out=$ROOT/build/dist version part
  while (($#)); do
    case $1 in
      --source | --deb | --static) wanted+=("${1#--}") ;;
      --out) [[ -n ${2:-} ]] || wrong_use "--out needs a directory" && out=$2 && shift ;;
      *) wrong_use "unknown argument '$1'; package takes --source, --deb, --static and --out DIRECTORY" ;;
    esac
    shift
  done
  ((${#wanted[@]})) || wanted=(source deb static)
  version=$("$ROOT/lattice" --version) && version=${version#lattice }
  # The time that archives and packages carry.
  SOURCE_DATE_EPOCH=$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null) || die "package needs the git repository: the commit is what is packaged"
  export SOURCE_DATE_EPOCH
  [[ -z $(git -C "$ROOT" status --porcelain) ]] || say "the tree differs from its commit: programs are built from the files as they are"
  mkdir -p "$out" && out=$(readlink -f -- "$out") || die "cannot write to $out"
  for part in "${wanted[@]}"; do "package_$part" || die "package --$part failed"; done
  (cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS && cat SHA256SUMS)
}

# git writes the members of an archive in the order of their names, with the commit's time.
package_source() {
  git -C "$ROOT" archive --format=tar --prefix="lattice-$version/" HEAD | gzip -9n >"$out/lattice-$version.tar.gz"
}

package_deb() {
  need_debian dpkg-shlibdeps dpkg-dev
  prepare package lattice_run
  (locked logged "making the .deb package" cpack_deb)
}

# Configured again, because the changelog carries the commit's date.
cpack_deb() {
  configure_preset package && build_preset package lattice_run && cd "$ROOT/build/package" && rm -f -- *.deb && cpack -G DEB && mv -- lattice-run_*.deb "$out/"
}

package_static() {
  need_debian dpkg-query dpkg
  need_debian patch patch
  static_root_ready || (locked logged "building static libraries of Highway and SentencePiece" make_static_root) || return
  prepare static lattice_run
  strip --strip-all -o "$out/lattice-run-$version-linux-$(uname -m)" "$ROOT/build/static/bin/lattice-run"
}

# need_debian <program> <its package>
need_debian() {
  [[ $(package_manager) == apt ]] || die "this part of package needs Debian's tools and libraries"
  command -v "$1" >/dev/null || install_for "$2" "packaging" || die "$1 is missing"
}
