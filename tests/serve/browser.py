"""A headless Chromium that a test drives through the DevTools protocol, over a pair of pipes.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.press("Tab")
        assert page.run("document.activeElement.textContent") == "Chat"
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any, Optional

CHROMIUM = shutil.which("chromium")
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "ArrowRight": (39, ""), "ArrowDown": (40, "")}
SHIFT = 8  # the protocol's bit of the key


def _high(descriptor: int) -> int:
    """Moves a file descriptor to a number of at least 10."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class Browser:
    """A process of Chromium. Messages are JSON objects that end with a zero byte, at its file descriptors 3 and 4."""

    def __init__(self, timeout: float = 60):
        self.timeout = timeout
        self.events: list[dict] = []
        self._sent = 0
        self._rest = b""
        self._folder = tempfile.mkdtemp(prefix="weft_browser_")
        # Numbers from 10 on, so that giving the ends their numbers in the child closes none of them.
        from_us, self._to = (_high(end) for end in os.pipe())
        self._from, to_us = (_high(end) for end in os.pipe())

        def connect():
            os.dup2(from_us, 3)
            os.dup2(to_us, 4)

        self._log = open(os.path.join(self._folder, "log"), "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-extensions", "--remote-debugging-pipe",
             f"--user-data-dir={self._folder}/profile"],
            pass_fds=(3, 4), preexec_fn=connect, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            env=dict(os.environ, HOME=self._folder))
        os.close(from_us)
        os.close(to_us)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (RuntimeError, TimeoutError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, session: Optional[str] = None, **params) -> dict:
        """Sends a command and returns its result. Events that come in the meantime are kept."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            reply = self._read(deadline)
            if reply is None:
                raise TimeoutError(f"{method}: no reply for {self.timeout} s")
            if reply.get("id") != self._sent:
                continue
            if "error" in reply:
                raise RuntimeError(f"{method}: {reply['error']['message']}")
            return reply["result"]

    def _read(self, deadline: float) -> Optional[dict]:
        """Returns the next message, or None after the deadline."""
        while b"\0" not in self._rest:
            if not select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            piece = os.read(self._from, 1 << 20)
            if not piece:
                self._log.seek(0)
                raise RuntimeError(f"Chromium ended: {self._log.read()[-2000:]}")
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        reply = json.loads(message)
        if "id" not in reply:
            self.events.append(reply)
        return reply

    def open(self, url: str) -> "Page":
        return Page(self, self.call("Target.createTarget", url="about:blank")["targetId"], url)


class Page:
    """A tab of the browser."""

    def __init__(self, browser: Browser, target: str, url: str):
        self._browser, self._target = browser, target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method: str, **params) -> dict:
        return self._browser.call(method, self._session, **params)

    def _events(self) -> list[dict]:
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def run(self, script: str) -> Any:
        """Returns the value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 20) -> None:
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"not true within {seconds} s: {condition}; the page: "
                                     f"{self.run('document.body.innerText')[-1500:]}")
            time.sleep(0.02)

    def press(self, key: str, shift: bool = False) -> None:
        code, text = KEYS[key]
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": SHIFT if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Inserts a text where the focus is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Clicks into the middle of an element with the mouse, once the element has stopped moving."""
        middle = f"""(() => {{
            const at = document.querySelector({json.dumps(selector)});
            at.scrollIntoView({{block: 'nearest'}});
            const box = at.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()"""
        before, now, deadline = None, self.run(middle), time.monotonic() + 20
        while before != now and time.monotonic() < deadline:
            time.sleep(0.02)
            before, now = now, self.run(middle)
        x, y = now
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def look(self, width: int, height: int = 900, dark: bool = False, still: bool = False) -> None:
        """Sets the size of the window, the colours of the system, and whether it avoids motion."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def shoot(self, path: str) -> None:
        """Writes a picture of the window as PNG."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def problems(self) -> list[str]:
        """Returns the errors and warnings that the page has logged, and the exceptions that nothing caught."""
        self.call("Runtime.evaluate", expression="0")  # the events before it have come then
        found = []
        for event in self._events():
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str([argument.get("value") for argument in params["args"]]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}".strip())
        return found

    def requests(self) -> list[str]:
        """Returns the addresses that the page has requested."""
        return [event["params"]["request"]["url"] for event in self._events()
                if event["method"] == "Network.requestWillBeSent"]
