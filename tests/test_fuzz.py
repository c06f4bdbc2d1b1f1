"""`lattice fuzz`: what it finds, keeps and counts, with a small target that has one fault of each kind; and differential
fuzzing, which must notice a result that is wrong."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from cli_program import ROOT

PROGRAM = ROOT / "tools" / "fuzz"
CLANG = shutil.which("clang++-14")
needs_clang = pytest.mark.skipif(CLANG is None, reason="needs clang++-14 with libFuzzer")

# Inputs that begin with C crash, with S compute for two seconds, with M allocate 300 MB, with P 20 MB in small pieces, those
# of them that MODE has.
TARGET = """
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>
#ifdef BOUND
#include "allocation_bound.h"
#endif
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const mode = MODE;
  if (size < 1) return 0;
  const char first = static_cast<char>(data[0]);
  bool wanted = false;
  for (const char* m = mode; *m != 0; ++m) wanted |= *m == first;
  if (!wanted) return 0;
#ifdef BOUND
  const lattice::fuzz::AllocationBound bound(size);
#endif
  if (first == 'C') std::abort();
  if (first == 'P') { std::vector<std::unique_ptr<char[]>> pieces; while (pieces.size() < 20000) pieces.emplace_back(new char[1000]); }
  if (first == 'M') { void* volatile taken = std::malloc(300u << 20); std::free(taken); }
  if (first == 'S') { const std::clock_t end = std::clock() + 2 * CLOCKS_PER_SEC; while (std::clock() < end) {} }
  return 0;
}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A build tree with targets that can reach nothing, a crash, something slow, a large allocation, and many small ones."""
    folder = tmp_path_factory.mktemp("build")
    (folder / "fuzz").mkdir()
    (folder / "bin").mkdir()
    (folder / "target.cc").write_text(TARGET)
    names = {"clean": "", "crash": "C", "slow": "S", "large": "M", "pieces": "P"}
    for name, mode in names.items():
        # Allocations are seen through ASan, by libFuzzer and by us.
        flags = ["-fsanitize=fuzzer,address"] if name in ("large", "pieces") else ["-fsanitize=fuzzer"]
        if name == "pieces":
            flags += ["-DBOUND", f"-I{ROOT}/fuzz", ROOT / "fuzz" / "allocation_bound.cc"]
        subprocess.run([CLANG, "-std=c++20", *flags, f'-DMODE="{mode}"', folder / "target.cc", "-o",
                        folder / "bin" / f"{name}_fuzz"], check=True)
    listed = [{"name": name, "options": ["-max_len=64", "-malloc_limit_mb=64", "-timeout=30"]} for name in names]
    (folder / "fuzz" / "targets.json").write_text(json.dumps([*listed, {}]))
    return folder


def command(build, corpus, *args):
    return [sys.executable, PROGRAM, "--build", build, "--corpus", corpus, "--account", corpus.parent / "account.json",
            *map(str, args)]


def fuzz(build, corpus, *args):
    return subprocess.run(command(build, corpus, *args), capture_output=True, text=True, timeout=300)


@pytest.fixture
def corpus(tmp_path, build):
    for name in ("clean", "crash", "slow", "large", "pieces"):
        (tmp_path / "corpus" / name).mkdir(parents=True)
        (tmp_path / "corpus" / name / "seed").write_text("x")
    for left in ("found", "findings"):
        shutil.rmtree(build / "fuzz" / left, ignore_errors=True)
    return tmp_path / "corpus"


@needs_clang
@pytest.mark.parametrize("name, kind", [("crash", "crash"), ("slow", "slow"), ("large", "allocation"),
                                        ("pieces", "allocation")])
def test_a_fault_is_found_and_can_be_repeated(build, corpus, name, kind):
    (build / "fuzz" / "found" / name).mkdir(parents=True)
    (build / "fuzz" / "found" / name / "faulty").write_text({"crash": "C", "slow": "S", "large": "M", "pieces": "P"}[name])
    done = fuzz(build, corpus, "--minutes", 0.05, "--only", name, "--no-store")
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.search(rf"found: {kind} in {name}: .*\n    (.*)", done.stdout)
    assert found, done.stdout
    program, *arguments = found[1].split()
    if kind != "slow":
        assert subprocess.run([program, *arguments], capture_output=True, timeout=60).returncode != 0
    account = json.loads((corpus.parent / "account.json").read_text())
    assert account["targets"][name]["findings"] >= 1


@needs_clang
def test_executions_add_up_over_sessions_and_targets_take_turns(build, corpus):
    arguments = ("--minutes", 0.05, "--slice", 1, "--only", "clean")
    assert fuzz(build, corpus, *arguments).returncode == 0
    first = json.loads((corpus.parent / "account.json").read_text())["targets"]["clean"]
    assert fuzz(build, corpus, *arguments).returncode == 0
    second = json.loads((corpus.parent / "account.json").read_text())["targets"]["clean"]
    assert second["executions"] > first["executions"] > 0 and second["seconds"] > first["seconds"]
    assert fuzz(build, corpus, "--minutes", 0.02, "--only", "clean", "--reset").returncode == 0
    assert json.loads((corpus.parent / "account.json").read_text())["targets"]["clean"]["seconds"] < second["seconds"]


@needs_clang
def test_an_interruption_keeps_what_was_done(build, corpus):
    process = subprocess.Popen(command(build, corpus, "--minutes", 5, "--only", "clean", "--slice", 200),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    findings = build / "fuzz" / "findings" / "clean"  # made when the first slice is about to begin
    deadline = time.monotonic() + 60
    while not findings.is_dir() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)  # some executions; none would do, too
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "executions in all sessions" in output
    assert json.loads((corpus.parent / "account.json").read_text())["targets"]["clean"]["seconds"] < 100


@needs_clang
def test_the_stored_corpus_is_small_and_keeps_seeds(build, corpus):
    sys.path.insert(0, str(ROOT / "tools"))
    from fuzz.corpus import MOST_INPUTS, is_found

    assert fuzz(build, corpus, "--minutes", 0.05, "--only", "clean").returncode == 0
    stored = list((corpus / "clean").iterdir())
    assert (corpus / "clean" / "seed").read_text() == "x"
    assert all(is_found(path) or path.name == "seed" for path in stored) and len(stored) <= MOST_INPUTS + 1


@needs_clang
def test_what_ubsan_finds_fails(tmp_path):
    """Without cmake/sanitizer_options.cc the program says what it found and ends well."""
    (tmp_path / "overflow.cc").write_text("int main(int argc, char**) { int x = 0x7fffffff; x += argc; return x > 0; }")
    for options, code in (([], 0), ([ROOT / "cmake" / "sanitizer_options.cc"], 1)):
        subprocess.run([CLANG, "-fsanitize=undefined", tmp_path / "overflow.cc", *options, "-o", tmp_path / "overflow"],
                       check=True)
        done = subprocess.run([tmp_path / "overflow"], capture_output=True, text=True)
        assert "signed integer overflow" in done.stderr and (done.returncode != 0) == bool(code), done


def test_wrong_use_is_said(tmp_path):
    assert fuzz(tmp_path, tmp_path, "--minutes", -1).returncode == 2
    done = fuzz(tmp_path, tmp_path)
    assert done.returncode == 2 and "no fuzz targets" in done.stderr


def test_committed_corpora_are_within_their_bounds():
    sys.path.insert(0, str(ROOT / "tools"))
    from fuzz.corpus import MOST_INPUTS, MOST_TOTAL_BYTES, is_found
    from fuzz.target import MOST_BYTES

    for folder in (ROOT / "fuzz" / "corpus").iterdir():
        assert (ROOT / "fuzz" / f"{folder.name}_fuzz.cc").is_file(), f"{folder} belongs to no target"
        found = [path for path in folder.iterdir() if is_found(path)]
        assert len(found) <= MOST_INPUTS and sum(path.stat().st_size for path in found) <= MOST_TOTAL_BYTES
        assert all(path.stat().st_size <= MOST_BYTES for path in folder.iterdir())


def test_the_document_shows_the_account():
    document = (ROOT / "docs" / "fuzzing.md").read_text()
    table = subprocess.run([sys.executable, PROGRAM, "--table"], capture_output=True, text=True).stdout.strip()
    assert table in document, "docs/fuzzing.md has another table; ./lattice fuzz --table prints the one of today"


DIFFERENTIAL = ROOT / "build" / "release" / "bin" / "lattice-differential"
needs_program = pytest.mark.skipif(not DIFFERENTIAL.is_file(), reason="built with the C++ tests")


@needs_program
def test_a_wrong_result_is_noticed_with_a_seed_that_repeats_it():
    done = subprocess.run([DIFFERENTIAL, "--first", "7", "--problems", "5", "--spoil"], capture_output=True, text=True)
    assert done.returncode == 1 and "repeat with: lattice-differential --first" in done.stdout
    assert "in float64 under scalar: error" in done.stdout


@needs_program
def test_differential_problems_go_on_where_they_ended(tmp_path):
    for sum_of_both in (20, 40):
        done = subprocess.run([sys.executable, PROGRAM, "--differential", "--problems", "20", "--account",
                               tmp_path / "differential.json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        state = json.loads((tmp_path / "differential.json").read_text())
        assert state["problems"] == sum_of_both == sum(state["rules"].values()) and not state["disagreements"]
