"""A real Chromium driven over pipes by the DevTools protocol: no driver, no library, no network port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT_S = 60.0
"""Longest wait for one answer: the machine that runs tests may be busy."""


def chromium() -> str | None:
    """The browser on this machine."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Browser:
    """One page of one browser. Requests, console messages and uncaught errors are collected."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back = to, back
        self.last = 0
        self.pending = b""
        self.session = ""
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.loaded = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    # ---- the protocol ----

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.last:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + WAIT_S
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.back], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.back, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.pending += data
        text, _, self.pending = self.pending.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: Mapping[str, Any]) -> None:
        found = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(found["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.messages.append(str([a.get("value") for a in found["args"]]))
            case "Runtime.exceptionThrown":
                self.messages.append(json.dumps(found["exceptionDetails"])[:2000])
            case "Log.entryAdded":
                self.messages.append(found["entry"]["text"])
            case "Page.loadEventFired":
                self.loaded += 1

    # ---- what tests do ----

    def open(self, path: Path, fragment: str = "") -> None:
        """Opens a file as a new document, and waits until it is loaded."""
        for url in ("about:blank", path.as_uri() + (f"#{fragment}" if fragment else "")):
            before = self.loaded
            self.call("Page.navigate", url=url)
            while self.loaded <= before:
                self._note(self._next())

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, times: int = 1) -> None:
        """A key on whatever has the focus."""
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key)
        for _ in range(times):
            more = {"text": text} if text else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=codes[key], **more)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes[key])

    def resize(self, width: int, height: int, dark: bool = False, scale: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        # two frames: layout, then what is drawn anew for it
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def picture(self, whole: bool = True) -> bytes:
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="roofdsl-browser-", ignore_cleanup_errors=True) as profile:
        read_commands, to = os.pipe()
        back, write_answers = os.pipe()

        # the protocol speaks on descriptors 3 and 4
        plumbing = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$0" "$@"'
        command = [
            "bash", "-c", plumbing, program, "--headless=new", "--remote-debugging-pipe",
            f"--user-data-dir={profile}", "--no-first-run",
            "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
        ]  # fmt: skip
        process = subprocess.Popen(
            command, pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(read_commands)
        os.close(write_answers)
        try:
            yield Browser(to, back)
        finally:
            os.close(to)  # the end of its commands ends the browser
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
            os.close(back)
