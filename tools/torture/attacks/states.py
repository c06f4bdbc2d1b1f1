"""Saved states that were changed before they came back."""

from torture.forged import forge, mutated
from torture.registry import attack, check
from torture.stage import answer_of

# Beside the prompts of the correct client: these are read by nobody before the attack.
VICTIMS = [f"a letter to victim {i}: the treasure lies" for i in range(10)]
# Longer than a block of the prefix cache.
LONG_VICTIM = "the memory holds what the others have not told it yet. " * 8
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


def spread(scene, session, prompt):
    """Every way in which a session reads a prompt, so that the state behind it might be kept for others."""
    path = f"/v1/sessions/{session}"
    fork = scene.call("POST", path + "/fork").json()["id"]
    rewound = scene.call("POST", path + "/fork").json()["id"]
    scene.call("POST", path + "/append", dict(text=prompt, trace=True))
    scene.call("POST", f"/v1/sessions/{fork}/append", dict(text=prompt))
    scene.call("POST", f"/v1/sessions/{rewound}/append", dict(text=prompt + "!"))
    scene.call("POST", f"/v1/sessions/{rewound}/rewind", dict(position=0))
    scene.call("POST", "/v1/completions", dict(session=rewound, prompt=prompt, max_tokens=4, temperature=0, trace=True))
    for name in (fork, rewound, session):
        scene.call("DELETE", f"/v1/sessions/{name}")


@attack("state-poisoning", "a forged state, loaded at position 0 and continued with another client's prompt, changes "
        "no answer of that client")
def state_poisoning(scene):
    expected = scene.expected([*VICTIMS, LONG_VICTIM])
    empty = scene.call("GET", f"/v1/sessions/{scene.new_session()}/state").body
    taken = 0
    for title, value in VALUES.items():
        forged = forge(empty, value)
        for prompt in expected:
            session = scene.new_session()
            if load(scene, session, forged):
                taken += 1
                spread(scene, session, prompt)
            check(answer_of(scene.server, prompt) == expected[prompt],
                  f"after a state of {title} {prompt!r} got another answer")
    scene.figures["forged_states_taken"] = taken


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
