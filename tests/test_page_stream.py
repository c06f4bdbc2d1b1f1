"""How the page reads streamed answers, by properties over generated streams (page_stream.mjs), in node."""

import shutil
import subprocess

import pytest
from cli_program import ROOT

NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed (Debian: apt-get install nodejs)")
def test_streams_of_any_framing_and_any_bytes(tmp_path):
    # Modules, although no package.json beside the page says so.
    page = shutil.copytree(ROOT / "src" / "server" / "page", tmp_path / "page")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    done = subprocess.run([NODE, ROOT / "tests" / "page_stream.mjs", page / "http_engine.js", "1500"], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
