"""./lattice sbom: what the programs of build/release are made of, as a CycloneDX 1.5 document.

Read from what is there, not from a list: the shared libraries that the programs load, the headers that were compiled into
them (ninja's record of the build), and the Python packages of .venv, each with version and package URL, Python packages also
with the hashes of the locks. Licences are those of docs/third-party.md, or what a Python package says of itself; a component
with neither is an error, so that none comes in unnoticed. Exit code: 0 ok, 1 something is not listed, 2 wrong use.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LICENCES = ROOT / "docs" / "third-party.md"
PROGRAMS = ("bin/lattice-run", "bin/lattice", "lib/liblattice.so", "lib/liblattice_ops.so", "lib/lattice_parquet.so")


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def licences():
    """Name -> licence, from the tables of the document."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", LICENCES.read_text(), re.MULTILINE)
    return {canonical(name): licence.strip() for name, licence in rows}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def loaded(build):
    """The files of the shared libraries that the programs load, those of libraries included."""
    files = set()
    for program in PROGRAMS:
        if (build / program).exists():
            files |= {Path(path) for path in re.findall(r"(/\S+) \(0x", output("ldd", str(build / program)))}
    return {path for path in files if build.resolve() not in path.resolve().parents}


def compiled_in(build):
    """The headers outside of the tree that the build has read. ccache writes paths relative to the build where base_dir is set."""
    text = output("ninja", "-C", str(build), "-t", "deps")
    paths = {os.path.normpath(build.resolve() / path) for path in re.findall(r"^ +(\S+)$", text, re.MULTILINE)}
    return {Path(path) for path in paths if path.startswith("/usr/include/")}


def debian_owners(paths):
    """Source package -> (version, binary packages) of files that dpkg has installed."""
    names, packages = set(), {}
    for path in paths:
        names |= {str(path), str(path.resolve()), str(path).removeprefix("/usr"), "/usr" + str(path)}
    listed = sorted(names)
    for begin in range(0, len(listed), 2000):
        found = subprocess.run(["dpkg-query", "-S", *listed[begin:begin + 2000]], capture_output=True, text=True, check=False)
        for line in found.stdout.splitlines():
            for package in line.rpartition(": ")[0].split(", "):
                packages[package] = True
    if not packages:
        return {}
    owners = {}
    table = output("dpkg-query", "-W", "-f", "${binary:Package}\t${source:Package}\t${source:Version}\n", *packages)
    for line in table.splitlines():
        binary, source, version = line.split("\t")
        owners.setdefault(source, (version, []))[1].append(binary.partition(":")[0])
    return owners


def lock_hashes():
    """(name, version) -> SHA-256 of its files, from the locks."""
    found = {}
    for lock in sorted(ROOT.glob("requirements*.lock")):
        key = None
        for line in lock.read_text().splitlines():
            if pin := re.match(r"([\w.-]+)==([\w.+!-]+)", line):
                key = (canonical(pin[1]), pin[2])
            elif digest := re.match(r"\s+--hash=sha256:([0-9a-f]{64})", line):
                found.setdefault(key, set()).add(digest[1])
    return found


def python_packages():
    return {canonical(one.metadata["Name"]): one.version for one in metadata.distributions()
            if canonical(one.metadata["Name"]) not in ("pip", "lattice-recurrence")}


def stated_licence(name):
    """What a Python package says of itself; nothing when it does not."""
    about = metadata.metadata(name)
    classifiers = [one.rpartition(":: ")[2] for one in about.get_all("Classifier") or [] if one.startswith("License ::")]
    return about.get("License-Expression") or (about.get("License") or "").partition("\n")[0] or ", ".join(classifiers)


def components(build, missing):
    known, hashes = licences(), lock_hashes()

    def entry(kind, name, version, purl, **more):
        licence = known.get(name) or (stated_licence(name) if "pypi" in purl else "")
        if not licence:
            missing.append(f"{name} {version} is not listed in {LICENCES.relative_to(ROOT)}")
        return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl,
                "licenses": [{"license": {"name": licence or "NOASSERTION"}}]} | more

    for source, (version, binaries) in sorted(debian_owners(loaded(build) | compiled_in(build)).items()):
        name = re.sub(r"^gcc-\d+$", "gcc", canonical(source))
        yield entry("library", name, version, f"pkg:deb/debian/{source}@{version}",
                    properties=[{"name": "debian:packages", "value": " ".join(sorted(set(binaries)))}])
    for name, version in sorted(python_packages().items()):
        more = {}
        if (name, version) in hashes:
            more["properties"] = [{"name": "pypi:sha256", "value": " ".join(sorted(hashes[name, version]))}]
        yield entry("library", name, version, f"pkg:pypi/{name}@{version}", **more)


def document(build, missing):
    version = re.search(r"project\(lattice VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    parts = list(components(build, missing))
    programs = [{"type": "file", "name": program, "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(
        (build / program).read_bytes()).hexdigest()}]} for program in PROGRAMS if (build / program).exists()]
    content = json.dumps([parts, programs], sort_keys=True)
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            # The same for the same content: no time and no chance in it.
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
            "metadata": {"component": {"type": "application", "bom-ref": "lattice", "name": "lattice", "version": version,
                                       "licenses": [{"license": {"id": "Apache-2.0"}}], "components": programs}},
            "components": parts,
            "dependencies": [{"ref": "lattice", "dependsOn": [part["bom-ref"] for part in parts]}]}


def main():
    parser = argparse.ArgumentParser(prog="./lattice sbom", description=__doc__.partition("\n\n")[2],
                                     epilog="Example: ./lattice sbom --out lattice.cdx.json")
    parser.add_argument("--out", type=Path, help="a file for the document (default: standard output)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="a build directory (default build/release)")
    options = parser.parse_args()
    if not (options.build / "build.ninja").is_file():
        parser.error(f"there is no build in {options.build}")
    missing = []
    text = json.dumps(document(options.build, missing), indent=1) + "\n"
    if options.out:
        options.out.write_text(text)
    else:
        print(text, end="")
    for line in missing:
        print(f"sbom: {line}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
