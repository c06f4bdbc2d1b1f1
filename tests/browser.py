"""A headless Chromium driven over the DevTools protocol, through a pipe: no driver, no network."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
         "--disable-background-networking", "--disable-extensions", "--disable-component-update", "--force-color-profile=srgb",
         "--remote-debugging-pipe"]
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def high(descriptor):
    """The same pipe under a number that 3 and 4, which Chromium wants, do not collide with."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return copy


class Browser:
    """One page. `errors` collects what its scripts throw and what the console calls an error."""

    def __init__(self, *flags):
        self.profile = tempfile.mkdtemp(prefix="lattice-page-")
        ours_in, theirs_out = map(high, os.pipe())
        theirs_in, self.to = map(high, os.pipe())
        start = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out} 2>/dev/null'
        self.process = subprocess.Popen(["bash", "-c", start, "bash", CHROMIUM, *FLAGS, *flags, f"--user-data-dir={self.profile}"],
                                        pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.source, self.rest, self.numbers = ours_in, b"", itertools.count(1)
        self.answers, self.errors, self.session = {}, [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.source)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        self.wait_for(lambda: number in self.answers, f"an answer to {method}")
        answer = self.answers.pop(number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def receive(self, seconds):
        if not select.select([self.source], [], [], seconds)[0]:
            return
        data = os.read(self.source, 1 << 20)
        assert data, "the browser has ended"
        *messages, self.rest = (self.rest + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif message["method"] == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.errors.append(message["params"]["entry"])

    def wait_for(self, condition, what, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds} s for {what}"
            self.receive(0.05)

    def open(self, address):
        self.send("Page.navigate", url=address)
        complete = "location.href !== 'about:blank' && document.readyState === 'complete'"
        self.wait_for(lambda: self.run(complete), complete)

    def run(self, script):
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (script, result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, script, seconds=60):
        """Waits for a condition, and until what led to it is in sight."""
        self.wait_for(lambda: self.run(script), script, seconds)
        self.run(DRAWN)

    def click(self, selector):
        """A press of the mouse in the middle of an element, scrolled into view."""
        place = self.run(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "nearest"}});
            const box = element.getClientRects()[0];
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def type(self, selector, text):
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def key(self, name, code=0, modifiers=0):
        text = "\r" if name == "Enter" else ""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, text=text, windowsVirtualKeyCode=code, modifiers=modifiers)

    def show(self, width, height, dark=False, scale=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path, whole=False):
        """A PNG of what is in sight, or of the whole page."""
        self.run(DRAWN)
        image = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))
