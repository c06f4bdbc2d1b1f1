"""`./lattice plan`: the model of cost and its simulation in cases that can be computed by hand."""

import json
import math
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from cli_program import PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "tools"))

from plan import check, cost, simulate  # noqa: E402  (needs the path)

WORK = cost.Work("w", parameters=100_000_000, flops_per_token=6e8, batch_tokens=65536, seq_len=1024, activation_bytes=1e5)
MACHINE = cost.Machine(nodes=4, ranks_per_node=1, rank_flops=100e9, link_bytes=1e9, latency=0.0)


def test_one_rank_only_computes():
    one = cost.step(WORK, replace(MACHINE, nodes=1))
    assert one.compute == pytest.approx(65536 * 6e8 / 100e9)
    assert one.sums == one.exposed == one.gather == one.agree == 0


def test_a_ring_moves_each_byte_almost_twice():
    assert cost.all_reduce(MACHINE, 4e9) == pytest.approx(2 * 3 / 4 * 4)
    assert cost.all_gather(MACHINE, 4e9) == pytest.approx(3 / 4 * 4)
    late = replace(MACHINE, latency=1e-3)
    assert cost.all_reduce(late, 0) == pytest.approx(6e-3)


def test_sums_hide_behind_the_backward_pass():
    fast, slow = cost.step(WORK, MACHINE), cost.step(WORK, replace(MACHINE, link_bytes=1e6))
    assert fast.exposed < 0.05 * fast.sums, "only the last bucket is left"
    first = slow.window / len(cost.buckets(WORK))  # until the first bucket is ready
    assert slow.exposed == pytest.approx(slow.sums - slow.window + first)
    assert cost.bound(fast) == "computing" and cost.bound(slow) == "sums of gradients that do not hide"


def test_memory_counts_weights_gradients_and_a_share_of_moments():
    whole, shared = (cost.memory_per_rank(WORK, replace(MACHINE, nodes=n)) for n in (1, 4))
    assert whole - shared == pytest.approx(8 * WORK.parameters * 3 / 4)


def test_two_sums_at_a_time_take_as_long_as_one_after_the_other():
    assert simulate.ring_end([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]) == pytest.approx(6.0)
    assert simulate.ring_end([0.0, 10.0], [1.0, 2.0]) == pytest.approx(12.0)
    assert simulate.ring_end([5.0], [0.0]) == pytest.approx(5.0)


def test_the_simulation_without_chance_is_the_formula():
    plain = cost.step(WORK, MACHINE).seconds
    assert simulate.step_seconds(WORK, MACHINE, random.Random(1)) == pytest.approx(plain, rel=1e-3)
    late = [simulate.step_seconds(WORK, replace(MACHINE, spread=0.1), random.Random(i)) for i in range(20)]
    assert sum(late) / 20 > plain * 1.05


def test_goodput_without_failures_is_lost_to_checkpoints_only():
    calm = replace(MACHINE, node_mtbf=math.inf, save_delay=1.0)
    done = simulate.train(calm, 1000.0, 100.0, random.Random(1))
    assert done.failures == 0 and done.saves == 10 and done.seconds == pytest.approx(1010)


def test_failures_lose_half_an_interval_and_the_best_is_near_young_and_daly():
    rough = replace(MACHINE, node_mtbf=4 * 5000.0, save_delay=2.0, restart=10.0)
    outcome = simulate.train(rough, 1e6, 400.0, random.Random(2))
    assert outcome.failures == pytest.approx(outcome.seconds / 5000.0, rel=0.2)
    assert outcome.lost / outcome.failures == pytest.approx(200.0, rel=0.2)
    interval, goodput = simulate.best_interval(rough, 1e6, seed=3, tries=3)
    assert 0.5 <= interval / simulate.young_daly(rough) <= 2.0 and 0.8 < goodput < 1


def test_the_command_prints_a_plan():
    words = [sys.executable, ROOT / "tools" / "plan", "--config", "760m", "--nodes", "64", "--ranks-per-node", "8",
             "--link-gbps", "100", "--rank-gflops", "500"]
    facts = json.loads(subprocess.run([*words, "--json"], capture_output=True, text=True, check=True).stdout)
    assert facts["ranks"] == 512 and "128 sequences" in facts["note"]
    assert facts["compute_s"] == pytest.approx(2097152 / 512 * 4464688896 / 500e9)
    assert facts["days"]["3e+10"] == pytest.approx(2 * facts["days"]["1.5e+10"])
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "bound by" in shown and "train.save_every=" in shown
    wrong = subprocess.run([*words, "--nodes", "0"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "--nodes must be above 0" in wrong.stderr


def test_the_model_that_is_measured_can_be_inspected():
    work = check.work_of(PROGRAM)
    assert work.parameters > 4e6, "its gradients fill a bucket"
    assert work.flops_per_token > 6 * work.parameters / 2
