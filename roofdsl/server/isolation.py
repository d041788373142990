"""Calls answered in processes of their own, with limits on time and memory. They read only files under a root, and run
no programs.

A *nursery* process is forked before anything else happens in the server. It has imported the analyses, has one thread,
and only forks a child for each call, so a call costs a fork instead of a start of Python. An audit hook (PEP 578),
which Python code cannot remove, restricts the child: it opens no files except those under the root, roofdsl's own,
Python's and a few of the system, starts no program and opens no connection.

Later calls reuse what earlier ones derived: an on-disk cache (`roofdsl.store`) in a folder that lives as long as the
nursery.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from roofdsl import budget
from roofdsl.lang.cache_folder import FOLDER
from roofdsl.lang.record import Record
from roofdsl.server.preparations import preparations
from roofdsl.server.tools import GIVEN, Question

Run = Callable[[list[str]], int]
"""Runs a command line of roofdsl and gives its exit status. A failure is the last line of standard error, as JSON with
its `status`, its `message` and its `help`.
"""

Places = tuple[Path | None, Path]
"""The root, and the folder of what calls keep for later ones."""

MOST_BYTES = 8 << 20
"""The maximum size of an answer."""

FORBIDDEN = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "socket.connect", "socket.bind",
    "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "shutil.rmtree",
)  # fmt: skip
"""Python's audit events that raise an error in a child."""

_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Limits(Record):
    """The limits of a call: processor seconds, after which it ends by itself, bytes of memory, wall-clock seconds."""

    seconds: float = 20.0
    memory_bytes: int = 4 << 30
    wall_s: float = 60.0


class Answer(Record):
    """What a command wrote, and its exit status; None if it had to be killed."""

    status: int | None
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """The command's JSON, or `{"error": {"status", "message", "help"}}`."""
        if self.status in (0, 1) and self.out.strip():
            try:
                found = json.loads(self.out)
            except ValueError:
                found = None
            if isinstance(found, dict):
                return found
        return {"error": self._failure()}

    def _failure(self) -> dict[str, Any]:
        """The error that the command reported as JSON on its last line; otherwise what it wrote to standard error."""
        try:
            failure = json.loads(self.err.strip().rpartition("\n")[2])
            return {"status": self.status, "message": failure["message"][-4000:], "help": failure["help"]}
        except (ValueError, TypeError, KeyError):
            why = self.err.strip()[-4000:] or "the call exceeded its limits on time, memory or output"
            return {"status": self.status, "message": why, "help": ""}


class Nursery:
    """Answers questions one after another, each in a child process. Close it at the end, or use a `with` statement."""

    def __init__(self, run: Run, root: Path | None, limits: Limits) -> None:
        self._lock = threading.Lock()
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._kept = Path(tempfile.mkdtemp(prefix="roofdsl-kept"))
        given = (theirs, self._pipe), run, root, limits, self._kept
        self._process = context.Process(target=_serve, args=given, daemon=False)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, question: Question) -> Answer:
        """The answer; waits until questions asked before are answered."""
        with self._lock:
            try:
                self._pipe.send(question)
                answer = self._pipe.recv()
            except (EOFError, OSError):
                return Answer(None, "", "the server is closing")
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        """End the nursery, and any call in progress."""
        self._pipe.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        shutil.rmtree(self._kept, ignore_errors=True)


def _serve(ends: tuple[Connection, Connection], run: Run, root: Path | None, limits: Limits, kept: Path) -> None:
    """The nursery's loop, until the server closes its end of the pipe or is killed."""
    pipe, servers = ends
    servers.close()  # a copy of the server's end here would keep the pipe open after the server has ended
    for meant_for_the_server in (signal.SIGINT, signal.SIGTERM):  # it closes the pipe, and then `kept` is removed
        signal.signal(meant_for_the_server, signal.SIG_IGN)
    os.environ[FOLDER] = str(kept)
    left = preparations()
    try:
        while True:
            while not pipe.poll() and next(left, False):
                pass
            question = pipe.recv()
            pipe.send(_answered(question, run, (root, kept), limits))
    except (EOFError, OSError):
        return
    finally:
        shutil.rmtree(kept, ignore_errors=True)


def _answered(question: Question, run: Run, places: Places, limits: Limits) -> Answer:
    """Fork, wait, and read what the child wrote."""
    with (
        tempfile.TemporaryDirectory(prefix="roofdsl") as folder,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        if question.text is not None:
            (Path(folder) / GIVEN).write_text(question.text, encoding="utf-8", errors="replace")
        child = os.fork()
        if not child:
            _answer(run, _command(question, limits), Path(folder), places, (out.fileno(), err.fileno()))
        status = _waited(child, limits.wall_s)
        return Answer(status, _read(out.fileno()), _read(err.fileno()))


def _waited(child: int, seconds: float) -> int | None:
    """The exit status; None if the child was killed, by us or by a signal."""
    end = time.monotonic() + seconds
    pause = 0.001
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _read(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, MOST_BYTES).decode("utf-8", errors="replace")


def _command(question: Question, limits: Limits) -> list[str]:
    """The command line, with the limits of a call as its budget."""
    return [f"--budget={limits.seconds:g}s,{limits.memory_bytes >> 20}MiB", *question.arguments]


def _answer(run: Run, arguments: list[str], folder: Path, places: Places, files: tuple[int, int]) -> None:
    """In the child: confine this process, run the command, and end."""
    status = 2
    try:
        os.setpgid(0, 0)
        budget.serve()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # commands end processes of their own with it
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(files[0], 1)
        os.dup2(files[1], 2)
        os.chdir(folder)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MOST_BYTES, 2 * MOST_BYTES))
        _confine(folder, *places)
        try:
            status = run(arguments)
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 2
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # the child must never return into the server's code
        with suppress(OSError):
            print(f"error: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status if isinstance(status, int) else 2)


def _confine(folder: Path, root: Path | None, kept: Path) -> None:
    """From here on, this process opens only files in these folders and a few of the system, starts no program and opens
    no connection.

    This cannot be undone.
    """
    package = Path(__file__).parents[1]
    own = [folder.resolve(), kept.resolve()]
    readable = [*own, package, package.parent / "models", Path(sys.prefix), Path(sys.base_prefix)]
    readable += [Path(p).resolve() for p in sys.path if p]
    if root is not None:
        readable.append(root)
    starts = tuple(f"{p}{os.sep}" for p in readable)
    system = ("/dev/null", "/dev/urandom", "/proc/self/", "/proc/meminfo", "/proc/cpuinfo", "/sys/devices/system/cpu")
    writable = (*(f"{p}{os.sep}" for p in own), "/dev/null")

    def may_write(path: str) -> bool:
        """Whether a path is in the call's own folder, in that of what is kept, or where numba keeps compiled code."""
        compiled = path.startswith(f"{package}{os.sep}") and f"{os.sep}__pycache__{os.sep}" in f"{path}{os.sep}"
        return compiled or path.startswith(writable)

    def hook(event: str, details: tuple[Any, ...]) -> None:
        if event in FORBIDDEN:
            raise PermissionError(f"{event} is not allowed in a call")
        if event not in ("open", "os.rename", "os.remove") or isinstance(details[0], int):
            return
        path = os.path.realpath(os.fsdecode(details[0]))
        changes = event != "open" or bool(details[2] & _CHANGES)
        paths = [path, os.path.realpath(os.fsdecode(details[1]))] if event == "os.rename" else [path]
        if changes and not all(map(may_write, paths)):
            raise PermissionError(f"{path} must not be written")
        if not path.startswith((*starts, *system)):
            raise PermissionError(f"{path} is not under the server's root")

    sys.addaudithook(hook)
