"""Options and fixtures shared by all tests: golden files and the length of the random tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests find everything anew, in child processes too, and neither use nor fill anybody's cache of derivations.
os.environ["ROOFDSL_CACHE"] = "off"
# What is printed is as wide as where there is no terminal, whatever the terminal that starts the tests.
os.environ.pop("COLUMNS", None)
# Processes that tests start read what an earlier one compiled: without that each of them compiles the package anew, and
# that takes as long as most commands. Containers often say otherwise.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# What is collected stays to the end: looking through it for garbage, again and again, takes a fifth of that time.
gc.disable()


# How long an example takes depends on the other programs that run, and on what is compiled or imported at that moment.
ON_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", ON_ANY_MACHINE, max_examples=40)
settings.register_profile("thorough", ON_ANY_MACHINE, max_examples=200)


COUNTS = {
    "--kernels": (6, 160, "how many random kernels are compared with brute force"),
    "--sweep-points": (1, 1, "points of each shipped kernel compared with predict"),
    "--long-points": (400_000, 4_000_000, "points of the sweep whose memory is measured"),
    "--residue-kernels": (3, 20, "random kernels whose plateaus are simulated"),
    "--fuzz": (80, 700, "how many inputs the fuzz test tries"),
    "--bound-sizes": (1, 2, "sizes at which I/O bounds meet optimal replacement"),
    "--c-programs": (4, 40, "random C programs that are read back and executed both ways"),
    "--words": (15, 90, "words of the headers that kernels are named after"),
    "--uniform-kernels": (15, 140, "random stencils whose stack distances in lines are walked"),
    "--uniform-forms": (15, 50, "random stencils whose closed forms in lines are compared with numbers"),
    "--operand-kernels": (15, 140, "random kernels with operands in any order whose stack distances are walked"),
    "--operand-forms": (6, 40, "random kernels of this kind whose closed forms in lines are compared with numbers"),
    "--submissions": (8, 20, "how many damaged submissions are graded"),
}
"""Option: how much without --thorough, how much with it, and what of."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough", action="store_true", help="all tests: long random searches, tutorials, every shipped kernel too"
    )
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")
    for option, (quick, thorough, what) in COUNTS.items():
        parser.addoption(option, type=int, default=None, help=f"{what}: {quick}, or {thorough} with --thorough")
    parser.addoption("--residue-seed", type=int, default=100, help="of the first of the kernels with remainders")
    parser.addoption(
        "--guided", type=int, default=0, help="seconds of coverage-guided fuzzing of each reader (atheris)"
    )
    parser.addoption("--all-budgets", action="store_true", help="every command on every hard kernel ends within 20 s")
    parser.addoption("--kept", action="store_true", help="all shipped kernels: from the cache as derived anew")
    parser.addoption("--fuzz-seed", default="2026", help="other inputs for the fuzz test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: takes long, and is run with --thorough only")
    spread = "spread(n, m): of its cases, n spread evenly are run; with --thorough m, or all of them"
    config.addinivalue_line("markers", spread)
    settings.load_profile("thorough" if config.option.thorough else "quick")
    for option, (quick, thorough, _) in COUNTS.items():
        name = option.removeprefix("--").replace("-", "_")
        if getattr(config.option, name) is None:
            setattr(config.option, name, thorough if config.option.thorough else quick)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what takes long, and most cases of what is run on all of something, unless all is asked for."""
    named = any("::" in argument for argument in config.args)
    if config.option.update_golden or named:
        return
    thorough = config.option.thorough
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("spread"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    out = {item for item in items if item.get_closest_marker("thorough") and not thorough}
    for of_one in cases.values():
        counts = of_one[0].get_closest_marker("spread").args  # type: ignore[union-attr]
        if thorough and len(counts) == 1:
            continue
        most = counts[-1] if thorough else counts[0]
        kept = {round(k * (len(of_one) - 1) / max(1, most - 1)) for k in range(most)}
        out |= {item for k, item in enumerate(of_one) if k not in kept}
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]
    # Some tutorials take minutes. What comes last is taken last, and one process would wait for the other's tutorial.
    items.sort(key=lambda item: item.path.parent.name != "tutorials")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Processes begin with tests in a row each, and take some of each other's later: most files stay in one process,
    which makes what their tests share once.
    """
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


def pytest_collection(session: pytest.Session) -> None:
    """Where several processes test everything, each begins with importing its own part of the files.

    pytest compiles the files that it imports. Where that has not been done yet, as in a new clone, it would take ten
    seconds of each process; here each finds on disk what the others have compiled.
    """
    worker, folders = getattr(session.config, "workerinput", None), session.config.getini("testpaths")
    if worker is None or [Path(a).name for a in session.config.args] != folders:
        return
    root, number, of = session.config.rootpath, int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    files = sorted(path for folder in folders for path in (root / folder).rglob("test_*.py"))
    for path in files[number * len(files) // of : (number + 1) * len(files) // of]:
        with suppress(Exception, pytest.skip.Exception):  # pytest imports it again, and says what there is to say
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: asserts that the file at `path` holds `text`, or writes it under --update-golden."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path} is missing; run pytest with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that the test starts may be interrupted, even where the tests were started with `nohup` or `&`."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # inherited from the shell, and by every child
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
