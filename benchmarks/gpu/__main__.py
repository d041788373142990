"""`benchmarks/gpu/run.sh [--again] [FOLDER] [PART...]`: see there."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.gpu import plan, profile
from benchmarks.gpu.keep import LOST, Pack, watched
from benchmarks.gpu.meter import Meter
from benchmarks.gpu.plan import PlannedRun
from benchmarks.gpu.report import first_line, write_report
from benchmarks.gpu.results import Results, key_of, run_json
from benchmarks.kernels import ROOT, fresh, shipped
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.model import Kernel
from roofdsl.store.atomic import write_whole

if TYPE_CHECKING:
    from roofdsl.measure.gpu import Known

PARTS = ("smoke", "machine", "kernels", "traffic", "memcheck", "racecheck", "report")
MOST_CHARACTERIZING = 300
MOST_SECONDS = 60
"""Of one run, verification and compilation included: what takes longer is taken to hang."""
NCU_SECONDS = 90
"""Of a batch of runs under ncu."""
CHECK_SECONDS = 200
"""Of a batch of runs under compute-sanitizer."""
VERIFY_S, BUDGET_S = 0.3, 0.7
"""Seconds for the reference, and for the samples of one run."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu/run.sh", description=__doc__)
    parser.add_argument("folder", nargs="?", help="by default models/results/DEVICE-DATE")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; by default all")
    parser.add_argument("--again", action="store_true", help="repeat what has results already")
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--seconds", type=float, default=420, help="start nothing more after these seconds")
    parser.add_argument("--limit", action="append", default=[], metavar="PART=S", help="seconds of one part")
    parser.add_argument("--pack", type=Path, metavar="FILE.tar.gz", help="keep the folder in this file too")
    parser.add_argument("--begun", type=float, default=time.time(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    given = [options.folder, *options.parts] if options.folder in PARTS else options.parts
    unknown = [p for p in given if p not in PARTS]
    if unknown:
        parser.error(f"no part is named {unknown[0]}; there are {', '.join(PARTS)}")
    limits = _limits(parser, options.limit)
    try:
        folder = Path(options.folder) if options.folder and options.folder not in PARTS else _folder()
        pack = Pack(options.pack, folder)
        pack.unpack()
        folder.mkdir(parents=True, exist_ok=True)
        late = lambda: time.time() - options.begun > options.seconds  # noqa: E731
        work = Work(folder, options.begun if options.again else 0.0, tuple(options.kernel), late, pack)
        try:
            with Meter(folder / "clocks.csv") as meter:
                work.meter = meter
                for part in given or PARTS:
                    print(f"== {part}", flush=True)
                    work.until = time.monotonic() + limits.get(part, float("inf"))
                    getattr(work, part)()
                    pack.write()
        except Lost:
            pack.write()
            print("the device's context is lost: on with a new process", flush=True)
            sys.exit(LOST)
    except (CommandError, InputError) as error:
        sys.exit(f"error: {error}")
    print(f"done in {time.time() - options.begun:.0f} s: {folder}")


def _limits(parser: argparse.ArgumentParser, given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        part, _, seconds = text.partition("=")
        if part not in PARTS or not re.fullmatch(r"\d+(\.\d+)?", seconds):
            parser.error(f"`--limit {text}` is not PART=SECONDS")
        found[part] = float(seconds)
    return found


def _folder() -> Path:
    from roofdsl.measure.gpu_driver import find_driver

    name = re.sub(r"[^a-z0-9]+", "-", str(find_driver().describe()["name"]).lower()).strip("-")
    return ROOT / "models" / "results" / f"{name}-{date.today().isoformat()}"


def _device_works() -> bool:
    """Whether this process can still use the device: after an illegal access every later call of it fails."""
    import numpy as np

    from roofdsl.measure.gpu_driver import find_driver

    try:
        device = find_driver()
        return bool((device.get(device.put(np.arange(8.0))) == np.arange(8.0)).all())
    except Exception:  # whatever it is, there is no more to be had
        return False


class Lost(Exception):
    """The device does nothing more for this process."""


class Work:
    """The parts, each of which leaves alone what an earlier run of it (since `since`) left in `folder`."""

    def __init__(
        self, folder: Path, since: float, names: tuple[str, ...], late: Callable[[], bool], pack: Pack | None = None
    ) -> None:
        self.folder, self.since, self.names = folder, since, names
        self.pack = pack or Pack(None, folder)
        self.meter: Meter | None = None
        self.until = float("inf")
        self._late = late
        self._kernels: dict[str, Kernel] = {}
        self._files = shipped()
        self._verified: Known = {}

    def late(self) -> bool:
        """Whether it is too late to start anything more, in this part or at all."""
        return self._late() or time.monotonic() > self.until

    def _missing(self, path: Path) -> bool:
        return not path.exists() or path.stat().st_mtime < self.since

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = fresh(self._files[name], name)
        return self._kernels[name]

    def _wanted(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        return [run for run in runs if not self.names or run.kernel in self.names]

    def smoke(self) -> None:
        """One kernel of each kind at small sizes: what goes wrong is seen before minutes are spent."""
        runs = [r for name, variant in SMOKE for r in plan.planned().ragged if (r.kernel, r.variant) == (name, variant)]
        self._measure_all(self._wanted({r.kernel + r.variant: r for r in runs}.values()), "smoke")

    def machine(self) -> None:
        """The device as a machine file."""
        from roofdsl.measure.characterize_gpu import characterize_gpu
        from roofdsl.measure.gpu_machine import gpu_machine_text
        from roofdsl.measure.machine_file import save_machine

        path, mark = self.folder / "machine.roof", self.folder / "machine.begun"
        if not self._missing(path):
            return
        if mark.exists() and mark.stat().st_mtime >= self.since:
            print(f"left out: an earlier characterization did not end; delete `{mark}` to try it again")
            return
        begun = time.monotonic()
        try:
            with watched(mark, min(MOST_CHARACTERIZING, max(1.0, self.until - begun))):
                save_machine(path, gpu_machine_text(characterize_gpu()))
        except (CommandError, InputError):
            raise
        except Exception as error:  # of cupy and CUDA; the kernels can be measured all the same
            mark.write_text("", encoding="utf-8")
            print(f"no machine file: {type(error).__name__}: {first_line(error)}", flush=True)
            if not _device_works():
                raise Lost from error
        if self.meter is not None:
            write_whole(self.folder / "machine.card.json", json.dumps(self.meter.since(begun)) + "\n")

    def kernels(self) -> None:
        """The runs of the plan, verified and timed: KERNEL.json; what cannot be run, with its reason."""
        self._measure_all(self._wanted(plan.planned().runs))

    def _measure_all(self, runs: Sequence[PlannedRun], to: str = "kernels") -> None:
        results = Results(self.folder / to, self.since)
        mark = self.folder / f"{to}.begun"
        held = mark.read_text(encoding="utf-8") if mark.exists() else ""
        if held:
            lost = PlannedRun(**json.loads(held))
            results.refuse(lost, f"it did not end within {MOST_SECONDS} s, or took the process with it")
        mark.unlink(missing_ok=True)
        for number, run in enumerate(runs):
            if key_of(run) in results.done:
                continue
            if self.late():
                print(f"out of time after {number} of {len(runs)} runs: run again for the rest")
                return
            with watched(mark, MOST_SECONDS, holds=json.dumps(run_json(run))):
                said = self._measure(run, results)
            print(f"{run.kernel} {run.label}: {said}", flush=True)
            self.pack.write(now=False)

    def _measure(self, run: PlannedRun, results: Results) -> str:
        """One run, kept or refused. Raises Lost where the device is of no more use to this process."""
        from dataclasses import replace

        from roofdsl.measure.gpu import GpuOptions, measure_gpu
        from roofdsl.measure.timing import Plan

        begun = time.monotonic()
        how = GpuOptions(
            run.variant, Plan(budget_s=BUDGET_S), math_mode=run.math_mode, verify_s=VERIFY_S, known=self._verified
        )
        try:
            found = measure_gpu(self._kernel(run.kernel), run.sizes, how)
        except (CommandError, InputError) as error:
            results.refuse(run, first_line(error))
            return first_line(error)
        except Exception as error:  # of cupy and CUDA; the failure of one kernel must not end the others
            results.refuse(run, f"{type(error).__name__}: {first_line(error)}")
            if not _device_works():
                raise Lost from error
            return first_line(error)
        card = self.meter.since(begun) if self.meter is not None else {}
        results.add(run, replace(found, details={**found.details, "planned": dict(run.sizes), **card}))
        return f"{found.median_s:.4g} s"

    def traffic(self) -> None:
        """DRAM and L2 traffic of one execution of the first runs of the plan, read by ncu: traffic.json."""
        runs = [r for r in plan.planned().runs if r.seconds < 0.2]
        self._by_tool(self.folder / "traffic.json", runs, profile.traffic_of, NCU_SECONDS)

    def memcheck(self) -> None:
        """Accesses of all generated code at ragged sizes: memcheck.json."""
        self._by_tool(
            self.folder / "memcheck.json", plan.planned().ragged, _checker("memcheck"), CHECK_SECONDS, batch=40
        )

    def racecheck(self) -> None:
        """Races in shared memory, of the code that has some: racecheck.json."""
        shared = [r for r in plan.planned().ragged if r.variant == "tiled" or r.kernel in SUMS]
        self._by_tool(self.folder / "racecheck.json", shared, _checker("racecheck"), CHECK_SECONDS, batch=10)

    def _by_tool(
        self, path: Path, runs: Iterable[PlannedRun], tool: Tool, seconds: float, batch: int = profile.BATCH
    ) -> None:
        """What a tool says of all runs, batch by batch; all is kept after each."""
        kept: list[Mapping[str, Any]] = [] if self._missing(path) else json.loads(path.read_text(encoding="utf-8"))
        done = {key_of(PlannedRun(o["kernel"], o["variant"], o["sizes"])) for o in kept}
        left = [run for run in self._wanted(runs) if key_of(run) not in done]
        folder = self.folder / "tools"
        folder.mkdir(exist_ok=True)
        for at in range(0, len(left), batch):
            if self.late():
                print(f"out of time with {len(left) - at} runs left: run again for them")
                return
            some = left[at : at + batch]
            try:
                kept += tool(some, folder, min(seconds, max(20.0, self.until - time.monotonic())))
            except CommandError as error:
                print(error.message)
                return
            profile.keep(path, kept)
            self.pack.write(now=False)
            print(f"{min(at + batch, len(left))} of {len(left)}", flush=True)

    def report(self) -> None:
        """Every measurement beside its prediction on the machine file: README.md and the figures."""
        write_report(self.folder, self.late)


Tool = Callable[[Sequence[PlannedRun], Path, float], list[dict[str, Any]]]

SMOKE = (
    ("triad", "naive"), ("dot_f64", "naive"), ("gemm_f16", "naive"), ("linear_f8", "naive"), ("matmul_tiled", "tiled"),
)  # fmt: skip
SUMS = ("dot", "dot_f64", "dot_bf16", "dot_first", "gpp")
"""Kernels whose variant naive adds up in shared memory."""


def _checker(name: str) -> Tool:
    return lambda runs, folder, seconds: profile.checked(name, runs, folder, seconds)


if __name__ == "__main__":
    main()
