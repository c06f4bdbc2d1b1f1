"""Saved states that were changed before they came back."""

from torture.forged import forge, mutated
from torture.registry import Broken, Skipped, attack, check
from torture.stage import answer_of

TRUST = "--trust-states"
VALUES = {
    "numbers that change the text": lambda i: ((i * 37 % 101) - 50) / 25,
    "numbers near the largest": lambda i: 3e38 if i % 2 else -3e38,
    "the smallest numbers": lambda i: 1e-45,
}


def load(scene, session, state):
    """Whether the server takes the state."""
    answer = scene.call("PUT", f"/v1/sessions/{session}/state", state)
    check(answer.status == 200 or 400 <= answer.status < 500, f"a forged state got {answer.status}: {answer.body[:200]!r}")
    return answer.status == 200


def append(scene, session, prompt):
    scene.call("POST", f"/v1/sessions/{session}/append", dict(text=prompt))


def append_traced(scene, session, prompt):
    scene.call("POST", f"/v1/sessions/{session}/append", dict(text=prompt, trace=True))


def append_in_pieces(scene, session, prompt):
    for piece in (prompt[:3], prompt[3:]):
        append_traced(scene, session, piece)


def complete(scene, session, prompt):
    body = dict(session=session, prompt=prompt, max_tokens=4, temperature=0, trace=True)
    scene.call("POST", "/v1/completions", body)


def fork_and_append(scene, session, prompt):
    append_traced(scene, scene.call("POST", f"/v1/sessions/{session}/fork").json()["id"], prompt)


def rewind_and_append(scene, session, prompt):
    append_traced(scene, session, "something else")
    scene.call("POST", f"/v1/sessions/{session}/rewind", dict(position=0))
    append_traced(scene, session, prompt)


def score(scene, session, prompt):
    scene.call("POST", "/v1/completions", dict(session=session, prompt=prompt, max_tokens=0, echo=True, logprobs=1))


# Every way in which a session reads a prompt, so that the state behind it might be kept for others.
WAYS = [append, append_traced, append_in_pieces, complete, fork_and_append, rewind_and_append, score]


@attack("state-poisoning", "a forged state, loaded at position 0 and continued with another client's prompt, changes "
        "no answer of that client")
def state_poisoning(scene):
    poison(scene)


@attack("trusted-state-poisoning", "the same where the server was told to take states of others (--trust-states)",
        own_servers=True)
def trusted_state_poisoning(scene):
    if not scene.stage.program.has(TRUST):
        raise Skipped(f"the server takes all states, or has no {TRUST}")
    scene.server = scene.start(args=(TRUST,))
    poison(scene)
    check(scene.figures["forged_states_taken"] > 0, "no forged state was taken")


def poison(scene):
    plan = [(title, way, length) for title in VALUES for way in WAYS for length in (1, 10)]
    # Prompts that nobody has read before the attack; the longer ones are longer than a block of the prefix cache.
    prompts = [f"letter {i} to a victim: the treasure lies " * length for i, (_, _, length) in enumerate(plan)]
    expected = scene.expected(prompts)
    empty = scene.call("GET", f"/v1/sessions/{scene.new_session()}/state").body
    forged = {title: forge(empty, value) for title, value in VALUES.items()}
    taken, changed = 0, []
    for (title, way, _), prompt in zip(plan, prompts):
        session = scene.new_session()
        if load(scene, session, forged[title]):
            taken += 1
            way(scene, session, prompt)
        try:
            same = answer_of(scene.server, prompt) == expected[prompt]
        except Broken as error:
            same = False
            scene.figures["error"] = str(error)
        if not same:
            changed.append(f"{title} by {way.__name__}")
    scene.figures["forged_states_taken"] = taken
    check(not changed, f"{len(changed)} of {len(plan)} victims got another answer: {', '.join(dict.fromkeys(changed))}")


@attack("state-mutations", "a damaged state is refused with 400, and the session it was sent to stays as it is")
def state_mutations(scene):
    session = scene.new_session("a state to be damaged")
    path = f"/v1/sessions/{session}/state"
    state = scene.call("GET", path).body
    harmless = 0
    for _ in range(scene.choose(200, 2000)):
        damaged = mutated(state, scene.random)
        if damaged == state:
            continue
        answer = scene.call("PUT", path, damaged)
        if answer.status == 200:
            harmless += 1  # only white space of the header: the state read back is the same
        else:
            check(answer.status in (400, 413), f"a damaged state got {answer.status}: {answer.body[:200]!r}")
    check(scene.call("GET", path).body == state, "a damaged state was taken")
    check(harmless <= 10, f"{harmless} damaged states were taken")
    scene.figures["taken_with_other_white_space"] = harmless
