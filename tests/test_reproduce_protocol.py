"""The protocol of docs/results.md: what is confirmed was selected before, on other seeds, and nothing is tuned a second time."""

import json
import shutil

import pytest
from cli_program import ROOT, ok, run

CONFIGS = ROOT / "configs" / "reproduce"
ROUNDS = [("select", "confirm"), ("select2", "confirm2")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("protocol")
    for names in ROUNDS:
        ok("reproduce", *names, "--scale", "miniature", "--out", out)
    return out


def results_of(made, names):
    return [json.loads((made / name / "results.json").read_text()) for name in names]


def means(rows):
    return {row["variant"]: sum(one["value"] for one in row["runs"]) / len(row["runs"]) for row in rows}


def winner_of(name, rows):
    """The best mean of the family."""
    family = {variant["name"] for variant in json.loads((CONFIGS / f"{name}.json").read_text())["variants"] if "family" in variant}
    return min((variant for variant in means(rows) if variant in family), key=means(rows).get)


@pytest.mark.parametrize("names", ROUNDS)
def test_what_is_confirmed_has_seeds_of_its_own_and_no_rates(made, names):
    first, second = results_of(made, names)
    assert "tuning" not in second
    seeds = [{one["seed"] for row in results["rows"] for one in row["runs"]} for results in (first, second)]
    assert not seeds[0] & seeds[1]


def test_the_first_round_has_the_best_rate_of_each_group(made):
    first, second = results_of(made, ROUNDS[0])
    winner = winner_of("select", first["rows"])
    rates = {tuned["group"]: tuned["best"] for tuned in first["tuning"]}
    for row in second["rows"]:
        own = {"Lattice-Dec": "lattice", "Lattice-Dec, present default": "lattice", "+ orthogonal recurrence": "not normalized"}
        assert row["rate"] == rates[own.get(row["variant"], row["variant"])]
        chosen = row["variant"] in ("Lattice-Dec", "+ orthogonal recurrence")
        assert row.get("chosen") == (winner if chosen else None)
        assert ("state_init=aligned" in row["runs"][0]["command"]) == (chosen and "aligned" in winner)


def test_the_second_round_has_the_rate_of_the_best_mean(made):
    first, second = results_of(made, ROUNDS[1])
    rates = {}
    for tuned in first["tuning"]:
        values = {rate["rate"]: rate["value"] for rate in tuned["rates"]}
        assert len(values) == 3 and tuned["best"] in values
        rates[tuned["group"]] = tuned["best"]
    # The seeds that tuned are those of the row, so its mean is the figure of the best rate.
    for row in first["rows"]:
        (tuned,) = [tuned for tuned in first["tuning"] if tuned["group"] == row["variant"]]
        (value,) = [rate["value"] for rate in tuned["rates"] if rate["rate"] == tuned["best"]]
        assert row["rate"] == tuned["best"] and value == pytest.approx(means(first["rows"])[row["variant"]])
    winner = winner_of("select2", first["rows"])
    wanted = {"Lattice-Dec": rates[winner], "Lattice-Dec, present default": rates["Lattice-Dec"], "DeltaNet": rates["DeltaNet"]}
    assert {row["variant"]: row["rate"] for row in second["rows"]} == wanted
    assert {row["variant"]: row.get("chosen") for row in second["rows"]}["Lattice-Dec"] == winner


@pytest.mark.parametrize("names", ROUNDS)
def test_nothing_is_confirmed_before_it_was_selected(tmp_path, names):
    early = run("reproduce", names[1], "--scale", "miniature", "--out", tmp_path)
    assert early.returncode == 0 and f"runs wait for what {names[0]} decides" in early.stderr
    assert not (tmp_path / "runs").exists() and not (tmp_path / names[1]).exists()


@pytest.mark.parametrize("names", ROUNDS)
def test_finished_runs_are_all_that_a_fresh_clone_needs(made, tmp_path, names):
    for folder in ("runs", "tokenizers"):
        shutil.copytree(made / folder, tmp_path / folder)
    again = run("reproduce", *names, "--scale", "miniature", "--out", tmp_path)
    assert again.returncode == 0 and " done in " not in again.stderr
    for name in names:
        assert (tmp_path / name / "results.json").read_bytes() == (made / name / "results.json").read_bytes()


def test_the_plan_counts_what_several_seeds_will_tune(tmp_path):
    """Three memories: three rates with the first seed, the best two with the second, whose runs the rows have as well."""
    plan = ok("reproduce", "select2", "--scale", "miniature", "--dry-run", "--out", tmp_path)
    assert "missing: 15 runs" in plan
