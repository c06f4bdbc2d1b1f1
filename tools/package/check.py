"""`./lattice test --package`: makes the files of a release twice and uses them.

The first time here, the second time from a clone in another directory and without ccache: every file must have the same bytes.
The static program must need no library, start in an empty environment and write the text that the release build writes; the
package must have no errors by lintian, and the program in it must start.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from torture.models import write_model  # noqa: E402


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], text=True, capture_output=True, errors="replace", **options)
    if result.returncode:
        sys.exit(f"package: '{' '.join(map(str, command))[:300]}' failed:\n{(result.stdout + result.stderr)[-2000:]}")
    return result.stdout


def check(condition, promise):
    if not condition:
        sys.exit(f"package: broken: {promise}")
    print(f"package: {promise}", flush=True)


def one(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def check_static(program, work):
    check("NEEDED" not in run("readelf", "--dynamic", program), f"{program.name} needs no library ({program.stat().st_size / 1e6:.1f} MB)")
    model = write_model("memory", work / "model")
    ask = ["generate", "--model", model, "--prompt", "A memory of", "--tokens", "24", "--temperature", "0", "--json"]
    texts = [run(path, *ask, env={}).partition('"text":')[2] for path in (program, ROOT / "build/release/bin/lattice-run")]
    check(texts[0] == texts[1], "it writes the text of the release build in an empty environment")
    (work / "plugin.so").touch()
    refused = subprocess.run([program, "inspect", "--plugin", work / "plugin.so", "--model", model], capture_output=True, text=True)
    check(refused.returncode == 1 and "linked statically" in refused.stderr, "it says that it cannot load plug-ins")


def check_deb(package, work):
    run("dpkg-deb", "-x", package, work / "deb")
    check("lattice-run" in run(work / "deb/usr/bin/lattice-run", "--version"), f"the program of {package.name} starts")
    check((work / "deb/usr/share/lattice/configs/tiny.toml").exists(), "it has its configurations")
    if shutil.which("lintian") is None:
        print("package: without lintian, Debian's policy is not checked: sudo apt-get install -y lintian")
        return
    # lintian does not like to be root; here it only reads the package.
    said = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", package], capture_output=True, text=True)
    print(said.stdout, end="")
    check(said.returncode == 0, "lintian finds no errors")


def build_again(preset, clone):
    """The program of a preset, built in the clone by the commit's files alone."""
    environment = {**os.environ, "CCACHE_DISABLE": "1", "SOURCE_DATE_EPOCH": run("git", "-C", clone, "log", "-1", "--format=%ct").strip()}
    # The static libraries stay out of the package, which has the system's.
    libraries = [f"-DCMAKE_LIBRARY_PATH={ROOT / 'build/static-root/lib'}"] if preset == "static" else []
    run("cmake", "--preset", preset, *libraries, cwd=clone, env=environment)
    run("cmake", "--build", "--preset", preset, "--target", "lattice_run", "--parallel", os.environ.get("LATTICE_JOBS", "1"), cwd=clone,
        env=environment)
    if preset == "package":
        run("cpack", "-G", "DEB", cwd=clone / "build/package", env=environment)
        return one(clone / "build/package", "*.deb").read_bytes()
    run("strip", "--strip-all", clone / "build/static/bin/lattice-run")
    return (clone / "build/static/bin/lattice-run").read_bytes()


def main():
    if run("git", "-C", ROOT, "status", "--porcelain"):
        sys.exit("package: the tree differs from its commit; commit first, because a clone is built to compare")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        out = work / "dist"
        subprocess.run([ROOT / "lattice", "package", "--out", out], check=True)
        check_static(one(out, "lattice-run-*-linux-*"), work)
        check_deb(one(out, "*.deb"), work)
        clone = work / "another" / "place"
        run("git", "clone", "--quiet", "--shared", ROOT, clone)
        check(build_again("static", clone) == one(out, "lattice-run-*-linux-*").read_bytes(), "built again, the static program is the same")
        check(build_again("package", clone) == one(out, "*.deb").read_bytes(), "built again, the package is the same")
        print((out / "SHA256SUMS").read_text(), end="")


if __name__ == "__main__":
    main()
