# The system's package manager, sourced by setup.sh: which one it is, which packages of packages.txt are missing, and the
# line that installs them. Debian's packages are installed by the launcher, those of other systems by the user.
# shellcheck shell=bash

# The columns of packages.txt.
readonly MANAGERS=(apt dnf pacman zypper apk)
readonly OS_RELEASE=${LATTICE_OS_RELEASE:-/etc/os-release}

# Prints one of MANAGERS, or nothing. The name of the system decides, then what is installed: a Debian may have dnf.
package_manager() {
  local id manager
  for id in $(os_release ID) $(os_release ID_LIKE); do
    case $id in
      debian | ubuntu) echo apt && return ;;
      fedora | rhel | centos) echo dnf && return ;;
      arch) echo pacman && return ;;
      suse | opensuse*) echo zypper && return ;;
      alpine) echo apk && return ;;
    esac
  done
  for manager in "${MANAGERS[@]}"; do
    ! command -v "${manager/#apt/apt-get}" >/dev/null || { echo "$manager" && return; }
  done
}

# os_release <field>: the field's value, e.g. "rhel fedora". The file is read, not run.
os_release() { sed -nE "s/^$1=[\"']?([^\"']*)[\"']?\$/\\1/p" "$OS_RELEASE" 2>/dev/null; }

# Names of that manager's packages, one on a line.
packages_of() {
  local column
  for column in "${!MANAGERS[@]}"; do
    [[ ${MANAGERS[column]} != "$1" ]] || awk -v column=$((column + 1)) '!/^#/ && NF && $column != "-" { print $column }' "$PACKAGES"
  done
}

# Those of the system's packages that are not installed. Prints nothing where there is no way to ask.
missing_packages() {
  local manager wanted
  manager=$(package_manager)
  mapfile -t wanted < <(packages_of "$manager")
  case $manager in
    apt) command -v dpkg-query >/dev/null && missing_by_dpkg "${wanted[@]}" ;;
    dnf | zypper) command -v rpm >/dev/null && missing_by rpm -q --whatprovides ;;
    pacman) command -v pacman >/dev/null && pacman -T "${wanted[@]}" ;;
    apk) command -v apk >/dev/null && missing_by apk info -e ;;
  esac
  return 0
}

missing_by_dpkg() {
  dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
    awk -v wanted="$*" '$2 == "installed" { have[$1] = 1 }
      END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) print names[i] }'
}

# missing_by <command...>: those of the caller's `wanted` for which the command fails.
missing_by() {
  local name
  for name in "${wanted[@]}"; do "$@" "$name" >/dev/null 2>&1 || echo "$name"; done
}

# install_line <packages...>: what the user types to install them.
install_line() {
  local line
  case $(package_manager) in
    apt) line="apt-get install -y --no-install-recommends" ;;
    dnf) line="dnf install -y" ;;
    pacman) line="pacman -S --needed --noconfirm" ;;
    zypper) line="zypper --non-interactive install" ;;
    apk) line="apk add" ;;
  esac
  ((EUID == 0)) || line="sudo $line"
  echo "$line $*"
}

# Elsewhere than on Debian a package may have another name than packages.txt has, or a library may come from elsewhere: the
# build goes on where its tools are there, and CMake says which libraries it does not find.
ask_for_packages() {
  say "these packages seem to be missing. To install them:
    $(install_line "$@")"
  has_one_of cmake || die "cmake is missing, and nothing can be built without it"
  has_one_of ninja ninja-build samu || die "ninja is missing, and nothing can be built without it"
  has_one_of "${CXX:-c++}" g++ clang++ || die "a C++ compiler is missing: GCC 12 or Clang 14, or newer"
}

has_one_of() {
  local program
  for program in "$@"; do ! command -v "$program" >/dev/null || return 0; done
  return 1
}
