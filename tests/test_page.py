"""The views of the page: every click a user makes."""

import json
import re
import time

import pytest
from cli_program import ROOT, ok
from page_driver import browser, choose, count, model, needs_chromium, page, position, server, shades, text, write  # noqa: F401

pytestmark = needs_chromium


def test_a_text_streams_and_the_memory_lights_up(page):
    assert "2 layers × 2 heads" in text(page, "#facts") and "32 slots" in text(page, "#facts")
    choose(page, max_tokens=2000)
    page.type("#prompt", "the memory é ")
    page.run("""window.seen = [];
        new MutationObserver(() => seen.push(document.getElementById('text').childElementCount))
            .observe(document.getElementById('text'), {childList: true});""")
    page.click("#go")
    page.until("document.getElementById('stop').disabled && document.getElementById('prompt').value === ''")
    assert 0 < min(page.run("seen")) < count(page), "shown while the rest is still on its way"
    assert text(page, "#text").startswith("the memory é ")
    length = count(page)
    assert 100 < length == position(page) <= 14 + 2000
    assert page.run("document.querySelectorAll('#text .prompt').length") == 14, "é is two tokens"
    assert page.run("document.querySelectorAll('#text .token.plain').length") == 0, "every token has a novelty"
    thickness = "new Set([...document.querySelectorAll('#text .token')].map(t => getComputedStyle(t).borderBottomWidth)).size"
    assert page.run(thickness) > 2
    assert shades(page, "#heads") > 20 and shades(page, "#raster") > 20
    page.until("document.getElementById('rank').textContent !== ''")
    assert shades(page, "#similarity") > 20
    assert re.search(r"effective rank [\d.]+ of 32", text(page, "#rank"))
    page.until("document.getElementById('live').textContent.length > 0")


def test_an_empty_page_explains_itself_and_begins_with_an_example(page):
    assert "Nothing has been read yet" in text(page, "#start") and page.run("document.getElementById('text').hidden")
    choose(page, max_tokens=30)
    example = text(page, "#start button")
    page.click("#start button")
    page.until("document.getElementById('stop').disabled && document.querySelectorAll('#text .token').length > 0")
    assert text(page, "#text").startswith(example) and count(page) > len(example)
    assert page.run("document.getElementById('start').hidden && !document.getElementById('text').hidden")
    page.click("#fresh")
    page.until("!document.getElementById('start').hidden")


def test_the_speed_is_shown(page):
    write(page, "the memory", tokens=40)
    assert re.fullmatch(r"[\d.]+ tokens/s", page.run("document.getElementById('speed').value"))


def test_axes_have_names_and_count_from_one(page):
    write(page, "the memory")
    page.run("""window.written = new Set();
        const draw = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (words, ...place) {
            written.add(String(words));
            draw.call(this, words, ...place);
        };
        dispatchEvent(new Event("resize"));""")
    page.until("written.size > 0")
    assert set(page.run("[...written]")) == {"layer", "head", "1", "2"}
    assert text(page, "#layer option") == text(page, "#head option") == "1"


def share(page, end):
    """A percentage of the legend of writes."""
    return float(page.run(f"document.getElementById('write-{end}').value").removesuffix(" %"))


def test_the_scale_of_writes_has_room_at_both_ends(page):
    write(page, "the memory holds a fixed number of slots", tokens=60)
    assert 0 < share(page, "low") < share(page, "high")
    brightest = """(() => {
        const canvas = document.getElementById("raster");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const pixels = new Uint32Array(data.buffer);
        const style = getComputedStyle(document.documentElement).getPropertyValue("--write").split(",");
        const probe = new OffscreenCanvas(1, 1).getContext("2d");
        probe.fillStyle = style.at(-1).trim();
        probe.fillRect(0, 0, 1, 1);
        const strongest = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
        return pixels.filter((pixel) => pixel === strongest).length / pixels.length;
    })()"""
    assert page.run(brightest) < 0.05, "few writes are as strong as can be shown"


def test_bytes_are_underlined_by_words(page):
    write(page, "the memory holds what is new", tokens=40)
    spans = page.run("[...document.querySelectorAll('#text .token')].map(t => [t.textContent, t.style.getPropertyValue('--value')])")
    words, before = [], "x"
    for piece, value in spans:
        if not words or (piece.isspace() and not before.isspace()):
            words.append(set())
        words[-1].add(value)
        before = piece
    assert all(len(values) == 1 for values in words), "a word has one value"
    assert len({value for values in words for value in values}) > 3, "and not all have the same"
    assert page.run("document.getElementById('unit').value") == "word"


IN_SIGHT = """(() => {
    const seen = (id) => {
        const box = document.getElementById(id).getBoundingClientRect();
        return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
    };
    return seen("strip") && seen("text");
})()"""


def test_on_a_phone_the_memory_is_in_sight_while_text_appears(page):
    page.show(390, 844)
    choose(page, max_tokens=60000)
    page.type("#prompt", "the ")
    page.click("#go")
    page.until("document.querySelectorAll('#text .token').length > 30")
    assert page.run(IN_SIGHT)
    before = page.run("document.getElementById('strip').toDataURL()")
    page.until(f"document.getElementById('strip').toDataURL() !== {json.dumps(before)}")
    page.run("document.getElementById('stop').click()")
    page.until("!document.getElementById('go').disabled")
    assert shades(page, "#strip") > 20
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "long positions do not widen the page"
    assert page.run("document.querySelector('.scrub output').scrollWidth <= document.querySelector('.scrub output').clientWidth")
    page.show(1400, 900)
    assert page.run("document.getElementById('strip').clientHeight") == 0, "beside the text there is the real thing"


def stops(file):
    """The colours from cosine -1 to 1, for light and for dark ground."""
    found = re.findall(r"--cosine: ([^;]*);", (ROOT / file).read_text())
    return [[tuple(bytes.fromhex(stop.strip()[1:])) for stop in ramp.split(",")] for ramp in found]


def test_a_cosine_of_one_is_red_on_both_pages(page, model, tmp_path):
    assert stops("src/server/page/base.css") == stops("src/eval/microscope_page.inc")
    for ramp in stops("src/server/page/base.css"):
        assert ramp[0][0] < ramp[0][2] and ramp[-1][0] > ramp[-1][2]
    diagonal = """(() => {
        const canvas = document.getElementById("%s");
        return [...canvas.getContext("2d").getImageData(1, 1, 1, 1).data];
    })()"""
    write(page, "the memory")
    page.until("document.getElementById('rank').textContent !== ''")
    server = page.run(diagonal % "similarity")
    ok("inspect", model, "--text", "the memory holds", "--html", tmp_path / "memory.html")
    page.open(f"file://{tmp_path / 'memory.html'}")
    page.until("document.getElementById('head').options.length > 0")
    red, _, blue, _ = page.run("""(() => {
        const canvas = document.getElementById("cosines");
        return [...canvas.getContext("2d").getImageData(0, 0, 1, 1).data];
    })()""")
    assert red > blue + 60 and server[0] > server[2] + 60, "every slot is similar to itself"
    assert text(page, "#head option") == "layer 1, head 1"
    assert text(page, "#table tr td") == "1"


def test_stop_ends_a_text_and_the_session_is_where_the_text_is(page):
    choose(page, max_tokens=60000)
    page.type("#prompt", "the ")
    page.click("#go")
    page.until("document.querySelectorAll('#text .token').length > 30")
    began = time.monotonic()
    page.click("#stop")
    page.until("!document.getElementById('go').disabled")
    assert time.monotonic() - began < 20, "60,000 tokens take minutes"
    length = count(page)
    page.run("new Promise(done => setTimeout(done, 300))")
    assert count(page) == length < 30000
    write(page, "memory", tokens=1)
    assert count(page) == length + 7, "goes on behind what was seen"


def test_escape_stops_too(page):
    choose(page, max_tokens=60000)
    page.type("#prompt", "the ")
    page.key("Enter", 13, modifiers=2)
    page.until("document.querySelectorAll('#text .token').length > 20")
    page.key("Escape", 27)
    page.until("!document.getElementById('go').disabled")


def test_scrubbing_shows_the_memory_of_then(page):
    write(page, "the memory holds")
    page.until("document.getElementById('rank').textContent !== ''")
    now = page.run("document.getElementById('heads').toDataURL()"), text(page, "#rank")
    page.run("document.getElementById('position').focus()")
    for _ in range(4):
        page.key("ArrowLeft", 37)
    assert position(page) == count(page) - 4
    page.until(f"document.querySelector('#text .current').dataset.index === '{count(page) - 5}'")
    assert page.run("document.getElementById('heads').toDataURL()") != now[0]
    page.key("Home", 36)
    page.until(f"document.getElementById('rank').textContent !== {json.dumps(now[1])}")
    page.key("End", 35)
    page.until(f"document.getElementById('rank').textContent === {json.dumps(now[1])}")
    assert page.run("document.getElementById('heads').toDataURL()") == now[0]


def test_rewind_forgets_and_the_same_seed_writes_the_same_again(page):
    write(page, "the memory", tokens=30)
    whole = text(page, "#text")
    page.click("#text .token:nth-child(10)")
    page.until("document.getElementById('position').value === '10'")
    assert "novelty" in text(page, "#token-facts")
    page.click("#rewind")
    page.until("document.querySelectorAll('#text .token').length === 10")
    choose(page, max_tokens=30)
    page.click("#go")
    page.until("document.getElementById('stop').disabled && document.querySelectorAll('#text .token').length === 40")
    assert text(page, "#text") == whole


def test_fork_and_compare(page):
    write(page, "the memory", tokens=25)
    first = text(page, "#text")
    page.click("#text .token:nth-child(12)")
    page.click("#fork")
    page.until("document.querySelectorAll('#branches [aria-pressed]').length === 2")
    assert count(page) == 12 and text(page, "#branches [aria-pressed=true]") == "B"
    write(page, " xyz", tokens=10)
    second = text(page, "#text")
    page.click("#branches button")
    page.until("document.querySelectorAll('#text .token').length === 35")
    assert text(page, "#text") == first, "what one branch writes does not touch the other"
    page.click("#tab-compare")
    sides = "#compare .side:first-child", "#compare .side:last-child"
    page.until("document.querySelectorAll('#compare .side:last-child .token').length === 26")
    assert [text(page, f"{side} .text") for side in sides] == [first, second]
    assert [page.run(f"document.querySelectorAll('{side} .shared').length") for side in sides] == [12, 12]
    assert "12 tokens shared" in text(page, "#difference")
    assert all(shades(page, f"{side} canvas") > 20 for side in sides)
    choose(page, max_tokens=5)
    page.click("#both-go")
    page.until("document.querySelectorAll('#compare .side:last-child .token').length === 31")
    page.until("document.getElementById('both-stop').disabled")
    assert count(page, sides[0]) == 40
    assert "tokens/s" in page.run("document.getElementById('both-speed').value")
    page.click("#tab-explore")
    page.until("document.querySelectorAll('#text .token').length === 40")
    page.click("#branches .quiet")
    page.until("document.querySelectorAll('#branches [aria-pressed]').length === 1")


def test_chat_streams_and_stops(page):
    page.click("#tab-chat")
    choose(page, max_tokens=8)
    page.type("#message", "What do you hold?")
    page.key("Enter", 13)
    page.until("document.getElementById('chat-stop').disabled && document.querySelectorAll('.message').length === 2")
    assert text(page, ".message.user p") == "What do you hold?"
    assert len(text(page, ".message.assistant p")) > 0
    choose(page, max_tokens=60000)
    page.type("#message", "And now?")
    page.click("#send")
    page.until("document.querySelectorAll('.message').length === 4 && document.querySelector('.message:last-child p').textContent.length > 20")
    # A short answer may arrive all at once, and has no speed then.
    page.until("document.getElementById('chat-speed').value.includes('tokens/s')")
    page.click("#chat-stop")
    page.until("document.getElementById('chat-stop').disabled")


def test_everything_can_be_reached_by_keys_and_shows_its_focus(page):
    write(page, "the memory")
    reached = []
    page.run("document.body.focus()")
    for _ in range(30):
        page.key("Tab", 9)
        reached.append(page.run("document.activeElement.id || document.activeElement.textContent"))
        style = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.run(f"document.activeElement === document.body || {style} !== 'none'"), reached[-1]
    assert {"tab-explore", "text", "position", "fork", "prompt", "go", "layer", "head", "heads"} <= set(reached)
    page.run("document.getElementById('heads').focus()")
    page.key("ArrowDown", 40)
    page.key("ArrowRight", 39)
    assert page.run("[document.getElementById('layer').value, document.getElementById('head').value]") == ["1", "1"]
    page.run("document.getElementById('tab-explore').focus()")
    page.key("ArrowRight", 39)
    assert not page.run("document.getElementById('compare').hidden")


CONTRAST = """(() => {
    const channels = (color) => {
        const probe = new OffscreenCanvas(1, 1).getContext("2d");
        probe.fillStyle = color;
        probe.fillRect(0, 0, 1, 1);
        return [...probe.getImageData(0, 0, 1, 1).data];
    };
    const light = (color) => channels(color).slice(0, 3).map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
    const ground = (element) => {
        for (; element; element = element.parentElement) {
            const color = getComputedStyle(element).backgroundColor;
            if (channels(color)[3] === 255) return color;
        }
        return "white";
    };
    const poor = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
        const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) poor.push([walker.currentNode.data.trim().slice(0, 40), ratio]);
    }
    return poor;
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_in_any_light_and_on_a_phone(page, tmp_path, dark):
    write(page, "the memory holds a fixed number of slots")
    page.run("document.getElementById('sampling').open = true")
    for width in (1400, 390):
        page.show(width, 844, dark)
        for view in ("explore", "compare", "chat"):
            page.click(f"#tab-{view}")
            page.screenshot(tmp_path / f"{view}-{width}.png")
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{view} scrolls sideways at {width}"
            assert page.run(CONTRAST) == [], (view, width)
    red = page.run("Number(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])")
    assert red < 60 if dark else red > 200
    page.show(1400, 900)
