"""lattice.runtime: the same text as lattice-run, the same bits every way, and errors with the library's words."""

import subprocess
import sys
import threading

import pytest
from cli_program import ROOT, train, write_text

from lattice.runtime import Error, Model, Sampling, Session, Tokenizer

RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"
GREEDY = Sampling(temperature=0)
SAMPLED = Sampling(temperature=1.0, top_p=1.0, seed=7, repetition_penalty=1.2)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runtime")
    train(write_text(path / "text.txt"), path / "run", "train.steps=30")
    return path / "run"


@pytest.fixture(scope="module")
def model(run):
    return Model.load(run, threads=1)


def generated(run, prompt, tokens, *more):
    """What the program writes, greedily."""
    command = [RUNNER, "generate", "--model", run, "--threads", 1, "--prompt", "-", "--tokens", tokens, "--temperature", 0, *more]
    done = subprocess.run(list(map(str, command)), capture_output=True, input=prompt.encode(), timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()[:-1]  # without the end of the line that it adds


@pytest.mark.parametrize("prompt", ["the memory", "", "a", "ä€𝄞 \x00 the"])
def test_greedy_text_is_that_of_the_program(run, model, prompt):
    wanted = generated(run, prompt, 60)
    assert model.generate(prompt, 60, GREEDY) == wanted
    session = model.session(prompt)
    assert "".join(session.stream(60, GREEDY)) == wanted


def test_bytes_that_are_no_text_come_out_as_the_program_shows_them(tmp_path_factory):
    """An untrained model writes bytes at random."""
    path = tmp_path_factory.mktemp("untrained")
    train(write_text(path / "text.txt"), path / "run", "train.steps=1", "train.lr=1e-9")
    wanted = generated(path / "run", "x", 200, "--repetition-penalty", 3)
    got = Model.load(path / "run").generate("x", 200, Sampling(temperature=0, repetition_penalty=3))
    assert "�" in wanted and got == wanted


def test_one_call_or_many_give_the_same_text_and_bits(model):
    whole, pieces = model.session("the memory"), model.session("the memory")
    text = whole.generate_tokens(40, SAMPLED)
    assert [token for n in (1, 0, 7, 32) for token in pieces.generate_tokens(n, SAMPLED)] == text
    assert whole.position == pieces.position == 50 and whole.logits() == pieces.logits()


def test_another_seed_gives_another_text(model):
    texts = {model.generate("the memory", 40, Sampling(temperature=1.0, seed=seed)) for seed in range(4)}
    assert len(texts) > 1


def test_fork_rewind_and_file_give_the_same_bits(model, tmp_path):
    session = model.session("the memory holds")
    snapshot, fork = session.snapshot(), session.fork()
    session.save(tmp_path / "state")
    text = session.generate_tokens(20, SAMPLED)
    logits = session.logits()
    assert fork.position == snapshot.position == 16
    assert fork.generate_tokens(20, SAMPLED) == text and fork.logits() == logits
    session.append("something else")
    session.rewind(snapshot)
    assert session.generate_tokens(20, SAMPLED) == text and session.logits() == logits
    loaded = model.load_session(tmp_path / "state")
    assert loaded.position == 16
    loaded.append(text)
    assert loaded.logits() == logits


def test_tokens_read_at_once_or_one_by_one(model):
    tokens = model.encode("the memory holds a fixed number of slots")
    together, alone = model.session(), model.session()
    together.append(tokens)
    for token in tokens:
        alone.append([token])
    assert together.logits() == alone.logits() and len(together.logits()) == model.vocabulary


@pytest.mark.parametrize("alone", [False, True])
def test_tokenizer(run, model, alone):
    tokenizer = Tokenizer.load(run / "checkpoints" / "latest") if alone else model
    assert tokenizer.encode("abc") == [97, 98, 99] and tokenizer.encode("") == []
    assert tokenizer.decode([97, 98, 99]) == "abc" and tokenizer.decode([]) == ""
    assert tokenizer.decode(tokenizer.encode("ä€𝄞 \x00")) == "ä€𝄞 \x00"
    assert tokenizer.decode([0xE2, 0x82]) == "�"
    assert tokenizer.end_of_text == 256 and tokenizer.vocabulary == 257
    assert tokenizer.encode(b"\xff\x00") == [255, 0]
    with pytest.raises(Error, match="257"):
        tokenizer.decode([257])


def test_a_missing_tokenizer_is_named(tmp_path):
    with pytest.raises(Error, match="nowhere"):
        Tokenizer.load(tmp_path / "nowhere")


def test_missing_and_damaged_input(run, model, tmp_path):
    with pytest.raises(Error, match=r"no model at .*nowhere"):
        Model.load(tmp_path / "nowhere")
    with pytest.raises(Error, match="no model at"):
        Model.load(tmp_path)
    with pytest.raises(Error, match="threads is -1"):
        Model.load(run, threads=-1)
    session = model.session("the memory")
    logits = session.logits()
    session.save(tmp_path / "state")
    damaged = bytearray((tmp_path / "state").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    for name, words in (("damaged", "damaged|not a number"), ("missing", "missing")):
        with pytest.raises(Error, match=words):
            session.load(tmp_path / name)
    assert session.position == 10 and session.logits() == logits


def test_a_session_of_another_model_is_refused(model, tmp_path):
    train(write_text(tmp_path / "text.txt"), tmp_path / "run", "train.steps=2")
    other = Model.load(tmp_path / "run", threads=1)
    session = other.session("the memory")
    session.save(tmp_path / "state")
    mine = model.session("x")
    with pytest.raises(Error, match="another model"):
        mine.load(tmp_path / "state")
    with pytest.raises(Error, match="another model"):
        mine.rewind(session.snapshot())
    assert mine.position == 1


def test_wrong_use(model, tmp_path):
    session = model.session("x")
    for tokens, words in (([], "no tokens"), ([100000], "outside the vocabulary"), ([-1], "outside the vocabulary")):
        with pytest.raises(Error, match=words):
            session.append(tokens)
    with pytest.raises(Error, match="append a token first"):
        model.session().logits()
    session.save(tmp_path / "state")
    with pytest.raises(Error, match="append a token first"):
        model.load_session(tmp_path / "state").generate(1)
    with pytest.raises(Error, match="100000"):
        model.decode([100000])
    for sampling, words in ((Sampling(temperature=-1), "temperature"), (Sampling(top_p=2), "top_p"),
                            (Sampling(seed=-1), "seed"), (Sampling(repetition_penalty=-2), "repetition_penalty")):
        with pytest.raises(Error, match=words):
            session.generate(1, sampling)
    assert session.position == 1


def test_threads_share_a_model(model):
    wanted = model.session("the memory").generate_tokens(60, SAMPLED)
    texts = {}

    def write(i):
        texts[i] = model.session("the memory").generate_tokens(60, SAMPLED)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(texts.values()) == [wanted] * 4


def test_sessions_outlive_the_name_of_their_model(run):
    session = Model.load(run, threads=1).session("the memory")
    assert isinstance(session, Session) and session.generate(5, GREEDY)


def test_torch_is_not_imported():
    code = "import sys, lattice.runtime; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "python", timeout=60)
