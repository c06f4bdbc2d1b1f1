"""`lattice torture train`, `pack` and `reproduce`: short runs find nothing, and a program that writes carelessly is found out."""

import json
import subprocess
import sys
import textwrap

import pytest
from cli_program import ROOT

PRELOAD = ROOT / "build" / "release" / "lib" / "liblattice_write_faults.so"


def torture(*args, timeout=1800):
    command = [sys.executable, ROOT / "tools" / "torture", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


@pytest.mark.parametrize("work", ["train", "pack"])
def test_a_disturbed_work_ends_like_an_undisturbed_one(work, tmp_path):
    done = torture(work, "--quick", "--out", tmp_path / "result.json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["faults"] >= 15 and not result["problems"] and len(result["by_kind"]) >= 4
    again = torture(work, "--quick", "--out", tmp_path / "result.json")
    assert again.returncode == 0 and "round" not in again.stdout, "what was done is not done again"


# Packs like ./lattice data pack, but says that it is done before it is.
CARELESS = '''
    #!{python}
    import os, sys
    out = sys.argv[sys.argv.index("--out") + 1]
    os.makedirs(out, exist_ok=True)
    for name, count in (("index.json", 1), ("shard-00000.tokens", 400)):
        file = os.open(os.path.join(out, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        for i in range(count):
            try:
                os.write(file, b"%d\\n" % i)
            except OSError as error:
                sys.exit(os.strerror(error.errno))
        os.close(file)
'''


def test_a_careless_program_is_found_out(tmp_path):
    program = tmp_path / "careless"
    program.write_text(textwrap.dedent(CARELESS).lstrip().format(python=sys.executable))
    program.chmod(0o755)
    done = torture("pack", "--quick", "--program", program)
    assert done.returncode == 1 and "shard-00000.tokens: differs" in done.stdout, done.stdout + done.stderr


def test_an_unknown_fault_is_refused(tmp_path):
    environment = {"LD_PRELOAD": str(PRELOAD), "LATTICE_FAULT_UNDER": str(tmp_path), "LATTICE_FAULT": "nonsense 3"}
    done = subprocess.run(["/bin/mkdir", tmp_path / "x"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "nonsense 3" in done.stderr


def test_wrong_use_exits_with_two(tmp_path):
    for args, said in ((["--program", tmp_path / "none"], "there is no"), (["--faults", "-1"], "--faults")):
        done = torture("train", *args)
        assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr
