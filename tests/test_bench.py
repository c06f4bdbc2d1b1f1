"""The benches' own rules: a wrong result is refused, a wrong argument is named, the figures add up."""

import json
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
SCAN, RULES, CHUNK, DECODE = (BENCH / name for name in ("scan", "rules", "chunk", "decode"))


@pytest.fixture
def on_path(monkeypatch):
    """Imports modules of one bench; both have a report.py, so nothing stays imported."""
    before = set(sys.modules)

    def use(folder):
        for path in (BENCH, folder):
            monkeypatch.syspath_prepend(str(path))

    yield use
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and str(BENCH) in file:
            del sys.modules[name]


def call(script, *arguments):
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("folder", [SCAN, RULES, CHUNK, DECODE, BENCH / "serve", BENCH / "distributed", BENCH / "gpu"], ids=lambda folder: folder.name)
def test_help_has_an_example(folder):
    done = call(folder / "bench.py", "--help")
    assert done.returncode == 0 and "Example: ./lattice bench" in done.stdout


def test_unknown_peer_is_named():
    done = call(SCAN / "bench.py", "--peers", "jax_exact,numpy_loop")
    assert done.returncode == 2
    assert "numpy_loop" in done.stderr and "torch_chunk" in done.stderr


@pytest.mark.parametrize("threads", ["0", "100000"])
def test_threads_that_are_not_there(threads):
    done = call(SCAN / "bench.py", "--threads", threads)
    assert done.returncode == 2 and f"got {threads}" in done.stderr


@pytest.mark.parametrize("wrong", [1.001, np.nan])
def test_gate_refuses_a_wrong_result(on_path, wrong):
    on_path(SCAN)
    import measure

    want = dict(y=np.ones(4), dk=np.ones(3))
    assert measure.gate("subject", want, want, 1e-4) == 0
    got = dict(want, dk=np.array([1.0, wrong, 1.0]))
    with pytest.raises(measure.WrongResult, match="subject: dk"):
        measure.gate("subject", got, want, 1e-4)


@pytest.mark.parametrize("module, chunk", [("lattice_scan", 1), ("torch_loop", 1), ("torch_chunk", 16)])
def test_subjects_pass_their_gate_and_no_other(on_path, tmp_path, module, chunk):
    on_path(SCAN)
    import measure
    import reference
    import worker

    shape = dict(B=2, T=32, H=2, M=8, D=6)
    subject = __import__(f"peers.{module}", fromlist=["Run"])
    options = dict(chunk=chunk) if chunk > 1 else {}
    for judged_by in (chunk, 1 if chunk > 1 else 16):
        file = tmp_path / f"{judged_by}.npz"
        reference.work(dict(shape=shape, chunk=judged_by, file=str(file)))
        job = dict(name=module, threads=1, options=options, gate=dict(shape=shape, file=str(file), tolerance=1e-4))
        if judged_by == chunk:
            assert worker.judge(subject, job) < 1e-4
        else:
            with pytest.raises(measure.WrongResult):
                worker.judge(subject, job)


def scan_row(seconds, T, **more):
    timing = dict(best=seconds, median=seconds, runs=3)
    return dict(title="x", error=0.0, shape=dict(B=1, T=T, H=12, M=64, D=64), forward=timing, both=timing, **more)


def test_ratios_are_per_head_token(on_path):
    on_path(SCAN)
    import report

    machine = dict(clock_ghz=3.0, threads=2, fma_per_cycle=16.0, l1_load_bytes_per_cycle=64.0,
                   l1_store_bytes_per_cycle=32.0)
    rows = [scan_row(1.0, 2048), scan_row(1.0, 256, peer="torch_loop")]
    rows = [report.with_rates(row, machine, own="peer" not in row) for row in rows]
    (ratio,) = report.ratios(rows)
    assert ratio["ratio"] == pytest.approx(8.0) and ratio["asked"] == 50
    forward = rows[0]["forward"]
    assert forward["cycles"] == pytest.approx(2 * 3.0e9 / (2048 * 12))
    assert forward["fma_bound"] == pytest.approx(64 * 64 * 6 / 16 / forward["cycles"])


def test_model_of_many_cores(on_path, monkeypatch):
    on_path(SCAN)
    import cores

    monkeypatch.setattr(cores, "exchange", lambda slots: 200.0)

    assert [cores.by_cells(12, count) for count in (1, 8, 12, 64)] == [1, 6, 12, 12]
    assert cores.by_columns(12, 64, token=700, exchanged=0) == pytest.approx(64), "exchanges that cost nothing use every core"
    assert cores.by_columns(12, 64, token=700, exchanged=700) == 12, "an exchange as long as the token gains nothing"
    rows = [(count, scan_row(seconds, 2048)) for count, seconds in ((1, 6.0), (2, 3.5))]
    figures = cores.compare(rows)
    assert figures["token_nanoseconds"] == pytest.approx(6e9 / 2048 / 12)
    assert figures["measured"][1]["forward"] == pytest.approx(6 / 3.5) and figures["measured"][1]["expected"] == 2
    assert "columns too" in cores.lines(figures)


def test_plots_are_well_formed(on_path, tmp_path):
    on_path(RULES)
    import measure
    import plot

    def row(rule, memory, T, speed):
        return dict(title=f"{rule} <&>", rule=rule, memory=memory, method="exact", T=T,
                    forward=dict(mega_head_tokens_per_s=speed), both=dict(mega_head_tokens_per_s=speed / 5))

    figures = dict(heads=12, slots=64, width=64, machine=dict(threads=2, cpu="A & B", isa="avx2"),
                   rows=[row("lattice_dec", "lattice_dec", 2048, 4.0), row("deltanet", "deltanet", 2048, 5.0)],
                   growth=[row("softmax_attention", "transformer", T, 1000 / T) for T in (512, 1024)])
    out = measure.Output(None)
    for name, figure in (("speeds", plot.speeds(figures)), ("growth", plot.growth(figures))):
        out.draw(tmp_path / f"{name}.svg", figure)
        tree = xml.etree.ElementTree.parse(tmp_path / f"{name}.svg")
        dots = [x for x in tree.iter() if x.tag.endswith("circle")]
        assert len(dots) >= (4 if name == "speeds" else 2)
        texts = " ".join(x.text or "" for x in tree.iter() if x.tag.endswith("text"))
        assert ("deltanet <&>" if name == "speeds" else "softmax_attention") in texts


TINY_DECODE = ["--quick", "--config", str(BENCH.parent / "configs" / "tiny.toml"), "--format", "int8", "--threads", "1",
               "--contexts", "0,8", "--batch", "1,2", "--seconds", "0"]


def test_decode_prints_a_table():
    done = call(DECODE / "bench.py", *TINY_DECODE)
    assert done.returncode == 0, done.stderr
    for text in ("int8", "decode behind 8 tokens", "against an empty session", "2 sessions", "products alone allow",
                 "of what the bandwidth allows", "prefix cache"):
        assert text in done.stdout


def test_decode_with_llama_bench(tmp_path):
    program = tmp_path / "llama-bench"
    program.write_text("#!/bin/sh\n[ \"$2\" = good.gguf ] || exit 1\n"
                       """echo '[{"n_prompt":512,"n_gen":0,"avg_ts":700.0},{"n_prompt":0,"n_gen":64,"avg_ts":66.0}]'\n""")
    program.chmod(0o755)
    done = call(DECODE / "bench.py", *TINY_DECODE, "--json", "--llama-bench", str(program), "--gguf", "good.gguf", "bad.gguf")
    good, bad = json.loads(done.stdout)["llama_cpp"]
    assert good == dict(file="good.gguf", prefill=700.0, decode=66.0)
    assert done.returncode == 1 and "exit status 1" in bad["error"]


def test_decode_names_what_is_wrong():
    done = call(DECODE / "bench.py", "--gguf", "a.gguf")
    assert done.returncode == 2 and "belong together" in done.stderr
    done = call(DECODE / "bench.py", "--format", "int9")
    assert done.returncode == 2 and "int9" in done.stderr


def test_the_model_of_gpus_is_that_of_the_docs():
    """docs/gpu.md has the tables of results/gpu/model.json, as the bench prints them."""
    done = call(BENCH / "gpu" / "bench.py", "--read", str(BENCH.parent / "results" / "gpu" / "model.json"))
    docs = (BENCH.parent / "docs" / "gpu.md").read_text()
    assert done.returncode == 0 and all(table.strip() in docs for table in done.stdout.split("\n\n"))


def span(rank, name, begin, end, lane=0):
    return {"name": name, "ph": "X", "pid": rank, "tid": lane, "ts": begin * 1e6, "dur": (end - begin) * 1e6}


def test_hidden_communication_is_what_work_did_not_wait_for(on_path):
    on_path(BENCH / "distributed")
    import bench

    events = [{"name": "process_name", "ph": "M", "pid": 0, "tid": 0},
              span(0, "backward", 0, 4), span(0, "sum", 1, 3, 1), span(0, "sum", 2, 5, 1), span(0, "wait for sums", 4, 5),
              span(0, "update", 5, 6), span(0, "gather weights", 6, 6.5), span(1, "sum", 0, 100, 1)]
    figures = bench.communication(events, 0)
    assert figures["sums_s"] == pytest.approx(4), "sums that overlap count once"
    assert figures["hidden"] == pytest.approx(0.75) and figures["gather_s"] == pytest.approx(0.5)


def test_a_timeline_shows_the_last_step(on_path):
    on_path(BENCH / "distributed")
    import bench

    events = [event for step in (0, 10, 20) for rank in (0, 1) for event in
              (span(rank, "forward", step, step + 1), span(rank, "sum", step + 1, step + 2, 1), span(rank, "update", step + 2, step + 3))]
    rows, bars = bench.last_step(events)
    assert rows == ["rank 0, work", "rank 0, network", "rank 1, work", "rank 1, network"]
    assert {bar["row"] for bar in bars} == {0, 1, 2, 3}
    assert min(bar["from"] for bar in bars) == 0 and max(bar["to"] for bar in bars) == pytest.approx(11)
