"""A real browser without a screen, driven over the WebDriver protocol: chromedriver and HTTP alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
MISSING = (
    "" if BROWSER and DRIVER else "needs chromium and chromedriver: apt-get install chromium chromium-driver"
)
KEYS = {
    "right": "\ue014", "left": "\ue012", "home": "\ue011", "end": "\ue010", "pgdn": "\ue00f",
    "pgup": "\ue00e", "enter": "\ue007", "esc": "\ue00c",
}  # fmt: skip
PATIENCE = 60  # seconds


class Browser:
    """One window. Every method is one or two commands of the protocol."""

    def __init__(self, address: str, session: str) -> None:
        self._base = f"{address}/session/{session}"

    def open(self, path: Path, fragment: str = "") -> None:
        send(
            f"{self._base}/url", {"url": "about:blank"}
        )  # another fragment alone would not load the page anew
        send(f"{self._base}/url", {"url": f"{path.resolve().as_uri()}{fragment}"})

    def run(self, script: str, *arguments: Any) -> Any:
        return send(f"{self._base}/execute/sync", {"script": script, "args": list(arguments)})

    def resize(self, width: int, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)

    def dark(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", {"features": features})

    def press(self, *keys: str) -> None:
        strokes = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": key} for key in strokes for kind in ("keyDown", "keyUp")]
        send(f"{self._base}/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector: str) -> None:
        found = send(f"{self._base}/element", {"using": "css selector", "value": selector})
        send(f"{self._base}/element/{next(iter(found.values()))}/click", {})

    def text(self, selector: str = "body") -> str:
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def step(self) -> int:
        return int(self.run("return Number(document.body.dataset.step)"))

    def screenshot(self) -> bytes:
        return base64.b64decode(send(f"{self._base}/screenshot", None))

    def _devtools(self, command: str, params: dict[str, Any]) -> None:
        send(f"{self._base}/goog/cdp/execute", {"cmd": command, "params": params})


def send(url: str, body: Any, method: str = "") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method or None)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode(errors="replace")[:2000]) from None


@contextmanager
def opened() -> Iterator[Browser]:
    """Start driver and browser on a free port; end both, and only them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(address)
            arguments = ["--headless=new", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
            arguments += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has no sandbox to offer
            options = {"binary": BROWSER, "args": arguments}
            wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
            session = send(f"{address}/session", wanted)["sessionId"]
            try:
                yield Browser(address, session)
            finally:
                send(f"{address}/session/{session}", None, "DELETE")
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if send(f"{address}/status", None)["ready"]:
                return
        except OSError:
            assert time.monotonic() < deadline, "chromedriver does not answer"
        time.sleep(0.05)
