"""Fields of a request that make the server compute or remember: schemas, biases, penalties, embeddings."""

import json
import threading
import time

from torture.registry import attack, check, together

MIB = 1 << 20


def doubling(levels, leaf):
    """A schema with 2^levels ways to go on: each definition has the next one twice."""
    defs = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": {**defs, f"d{levels}": leaf}, "$ref": "#/$defs/d0"}


def nested(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


STRING, NUMBER = {"type": "string"}, {"type": "number"}
# What is hard about a schema: ambiguity, recursion, numbers of parts, counts, depth, and references to nowhere.
SCHEMAS = {
    **{f"2^{levels} ways to begin a {leaf['type']}": doubling(levels, leaf)
       for levels in (6, 10, 13, 15, 17, 60) for leaf in (STRING, NUMBER)},
    "2^8 long strings": doubling(8, {"type": "string", "maxLength": 65536}),
    "itself": {"$ref": "#"},
    "itself or itself": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, STRING]},
    "arrays of itself or of itself": {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}},
    "3,000 optional properties": {"type": "object", "properties": {f"{i}": {"type": "null"} for i in range(3000)}},
    "1,000 values that begin alike": {"enum": ["a" * 40 + str(i) for i in range(1000)]},
    "more parts than a grammar may have": {"enum": ["x" * 200 + str(i) for i in range(300)]},
    "a long array": {"type": "array", "items": STRING, "minItems": 10000, "maxItems": 10000},
    "too long an array": {"type": "array", "minItems": 1 << 62},
    "deep arrays": nested(60),
    "deeper arrays": nested(400),
    "a negative length": {"type": "string", "minLength": -1},
    "a reference to nowhere": {"$ref": "#/$defs/nothing"},
    "a pattern": {"type": "string", "pattern": "(a+)+$"},
    "a large constant": {"const": "x" * 100000},
    "no schema": [],
}


def formatted(schema, **more):
    body = dict(prompt="a", max_tokens=40, temperature=1, seed=1, **more)
    return dict(body, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})


@attack("hostile-schemas", "a JSON schema of any shape is kept, or refused with 400, within 3 s of computing",
        memory_mib=256, after_mib=128)
def hostile_schemas(scene):
    for title, schema in SCHEMAS.items():
        answers = []
        spent = scene.check_cpu(3, lambda schema=schema, answers=answers: answers.append(
            scene.call("POST", "/v1/completions", formatted(schema))))
        status = answers[0].status if answers else 0
        check(status in (200, 400), f"{title}: got {status}: {answers[0].body[:200] if answers else b''!r}")
        scene.figures["slowest"] = max(scene.figures.get("slowest", 0), round(spent, 2))


@attack("many-hostile-schemas", "ambiguous schemas in many texts at once hold up nobody for long, in bounded memory",
        memory_mib=768, after_mib=192, args=("--batch", 64, "--queue", 64))
def many_hostile_schemas(scene):
    hard = [schema for title, schema in SCHEMAS.items() if "ways" in title or "itself" in title or "long" in title]
    deadline = time.monotonic() + scene.choose(4, 30)

    def storm(number):
        while time.monotonic() < deadline:
            body = formatted(hard[number % len(hard)], n=scene.choose(4, 8), stream=True)
            answer = scene.call("POST", "/v1/completions", dict(body, max_tokens=2000))
            check(answer.status in (200, 400, 429), f"got {answer.status}: {answer.body[:200]!r}")
            number += 1

    together([lambda i=i: storm(i) for i in range(8)], scene.scaled(120))


@attack("hostile-sampling", "biases and penalties that are many, unknown or no numbers are refused, and legal extremes "
        "change no other answer", memory_mib=128)
def hostile_sampling(scene):
    wrong = {
        "too many biases": dict(logit_bias={str(i % 257): 1 for i in range(257)} | {str(i): 1 for i in range(2000)}),
        "a million biases": dict(logit_bias={str(i): 1 for i in range(scene.choose(100000, 500000))}),
        "an unknown token": dict(logit_bias={"257": 1}),
        "a negative token": dict(logit_bias={"-1": 1}),
        "a token in words": dict(logit_bias={"a" * MIB: 1}),
        "a bias beyond 100": dict(logit_bias={"1": 100.001}),
        "a bias in words": dict(logit_bias={"1": "100"}),
        "a list of biases": dict(logit_bias=[1]),
        "a penalty beyond 2": dict(frequency_penalty=2.001),
        "a penalty below -2": dict(presence_penalty=-3),
        "a penalty in words": dict(presence_penalty="1"),
        "a penalty of null and a list": dict(frequency_penalty=[]),
    }
    for title, fields in wrong.items():
        answer = scene.call("POST", "/v1/completions", dict(prompt="a", max_tokens=2, **fields))
        check(answer.status == 400, f"{title}: got {answer.status}: {answer.body[:200]!r}")
        check(len(answer.body) <= 4096, f"{title}: an error of {len(answer.body)} bytes")
    for number in (b"NaN", b"Infinity", b"1e999", b"-1e999"):
        answer = scene.call("POST", "/v1/completions", b'{"prompt": "a", "logit_bias": {"1": ' + number + b"}}")
        check(answer.status == 400, f"a bias of {number!r} got {answer.status}")
    legal = dict(prompt="a", max_tokens=scene.choose(200, 2000), temperature=0, frequency_penalty=2, presence_penalty=2)
    for bias in (-100, 100):
        body = dict(legal, logit_bias={str(i): bias for i in range(256)})
        answer = scene.call("POST", "/v1/completions", body)
        check(answer.status == 200, f"a bias of {bias} for every byte got {answer.status}: {answer.body[:200]!r}")


@attack("embedding-flood", "requests for many long embeddings are bounded, and leave others their turn",
        memory_mib=384, after_mib=160, args=("--batch", 64, "--queue", 128))
def embedding_flood(scene):
    wrong = {"129 texts": ["a"] * 129, "an empty text": ["a", ""], "a tree": [[["a"]]], "a million texts": ["a"] * 500000,
             "unknown tokens": [1 << 20], "a long text": "a" * 100000, "nothing": []}
    for title, given in wrong.items():
        answer = scene.call("POST", "/v1/embeddings", dict(input=given))
        check(answer.status == 400, f"{title}: got {answer.status}: {answer.body[:200]!r}")
    lengths, seen, lock = scene.choose(500, 4000), [], threading.Lock()
    deadline = time.monotonic() + scene.choose(4, 30)

    def storm(number):
        while time.monotonic() < deadline:
            body = dict(input=[f"{number} {i} " + "a" * lengths for i in range(32)])
            answer = scene.call("POST", "/v1/embeddings", body)
            with lock:
                seen.append(answer.status)
            check(answer.status in (200, 429), f"got {answer.status}: {answer.body[:200]!r}")

    together([lambda i=i: storm(i) for i in range(8)], scene.scaled(120))
    scene.figures.update(answered=seen.count(200), too_many=seen.count(429))


@attack("idempotency-keys", "a repeated request is applied once, whoever sends it and however often; keys are bounded",
        memory_mib=96)
def idempotency_keys(scene):
    session = scene.new_session("begin")
    path = f"/v1/sessions/{session}/append"
    for key in ("", "a" * 256, "a b", "caf\u00e9", "\x7f"):
        answer = scene.call("POST", path, dict(text="x"), {"Idempotency-Key": key})
        check(answer.status == 400, f"the key {key[:10]!r} got {answer.status}: {answer.body[:200]!r}")
    answer = scene.call("POST", path, dict(text="x"), {"Idempotency-Key": "a" * 100000})
    check(answer.status in (400, 431), f"a long key got {answer.status}")
    before = position(scene, session)
    answers = together([lambda: scene.call("POST", path, dict(text="once"), {"Idempotency-Key": "same"})] * 32,
                       scene.scaled(60))
    statuses = [answer.status for answer in answers if answer]
    check(set(statuses) <= {200, 409} and 200 in statuses, f"32 times the same request got {sorted(set(statuses))}")
    check(position(scene, session) == before + 4, "a request that came 32 times was not applied once")
    answer = scene.call("POST", path, dict(text="other"), {"Idempotency-Key": "same"})
    check(answer.status == 422, f"a key for another request got {answer.status}")
    for i in range(scene.choose(200, 5000)):
        answer = scene.call("POST", path, dict(text="y", trace=True), {"Idempotency-Key": f"key {i}".replace(" ", "-")})
        check(answer.status == 200, f"append {i} got {answer.status}: {answer.body[:200]!r}")
    stored = scene.call("GET", "/metrics").body.decode()
    held = [float(line.split()[1]) for line in stored.splitlines() if line.startswith("lattice_session_bytes ")]
    check(held and held[0] < 8 * MIB, f"one session holds {held} bytes")


def position(scene, session):
    return json.loads(scene.call("GET", f"/v1/sessions/{session}").body)["position"]
