"""The tree keeps its own rules: tools/lint/check_tree.py finds nothing, and would find what is wrong."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("check_tree", ROOT / "tools/lint/check_tree.py")
check_tree = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_tree)


@pytest.mark.parametrize("check", check_tree.CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_found(check):
    assert list(check()) == []


def test_every_folder_of_src_has_a_layer():
    assert sorted(check_tree.layer_order()) == sorted(p.name for p in (ROOT / "src").iterdir() if p.is_dir())


def test_an_include_of_a_lower_folder_is_found():
    order = check_tree.layer_order()
    upside_down = list(check_tree.check_layers(order=order[::-1]))
    assert any("src/io includes src/base, which stands below it" in finding for finding in upside_down)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """check_tree on a small tree: call it with {name: text}, get the findings of one check."""

    def findings(check, files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(check_tree, "ROOT", tmp_path)
        monkeypatch.setattr(check_tree, "tracked", lambda: [tmp_path / name for name in files])
        return list(check())

    return findings


def test_links_to_nowhere_are_found(tree):
    found = tree(check_tree.check_links, {"a.md": "# One thing\n[x](b.md) [y](#one-thing) [z](#two) [w](a.md#one-thing)\n"})
    assert found == ["a.md:2: link to b.md, which does not exist", "a.md:2: link to #two, but there is no such heading"]


def test_names_of_files_that_are_gone_are_found(tree):
    text = "`src/a.cc` and `src/<any>.cc`, src/b.cc\n\n    pytest tests/test_gone.py\n"
    found = tree(check_tree.check_names, {"a.md": text, "src/a.cc": ""})
    assert found == ["a.md:1: names src/b.cc, which does not exist", "a.md:3: names tests/test_gone.py, which does not exist"]


def test_long_files_are_found(tree):
    found = tree(check_tree.check_lengths, {"a.py": "x\n" * 400, "b.cc": "x\n" * 401})
    assert found == ["b.cc:401: 401 lines; split it (at most 400)"]
