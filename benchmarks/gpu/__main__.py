"""`benchmarks/gpu/run.sh [--again] [FOLDER] [PART...]`: see there."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from itertools import product
from pathlib import Path

from benchmarks import validation_figure, validation_report
from benchmarks.gpu import plan
from benchmarks.gpu.keep import LOST, Pack, watched
from benchmarks.kernel_class import class_of
from benchmarks.kernels import ROOT, fresh, shipped
from benchmarks.validation_runs import Ran, Refusal, Report
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.measure.measurement import Measurement, load, save
from roofdsl.store.atomic import write_whole
from roofdsl.validate.compare import Comparison
from roofdsl.validate.run import How, Run, compare_all, measure_runs, stale

PARTS = ("machine", "kernels", "traffic", "others", "report")
METRICS = (
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors.sum",
    "l1tex__t_sectors.sum",
    "sm__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "sm__sass_thread_inst_executed_op_dadd_pred_on.sum",
    "sm__sass_thread_inst_executed_op_dmul_pred_on.sum",
)
_NCU_SECONDS = 60
MOST_CHARACTERIZING = 300
MOST_SECONDS = 120
"""Of one kernel, all variants and sizes: what takes longer is taken to hang."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu/run.sh", description=__doc__)
    parser.add_argument("folder", nargs="?", help="by default models/results/DEVICE-DATE")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; by default all")
    parser.add_argument("--again", action="store_true", help="run parts again whose files are there")
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--seconds", type=float, default=420, help="after which nothing more is begun")
    parser.add_argument("--pack", type=Path, metavar="FILE.tar.gz", help="keep the folder in this file too")
    parser.add_argument("--begun", type=float, default=time.time(), help=argparse.SUPPRESS)
    parser.add_argument("--resumed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    given = [options.folder, *options.parts] if options.folder in PARTS else options.parts
    unknown = [p for p in given if p not in PARTS]
    if unknown:
        parser.error(f"no part is named {unknown[0]}; there are {', '.join(PARTS)}")
    try:
        folder = Path(options.folder) if options.folder and options.folder not in PARTS else _folder()
        pack = Pack(options.pack, folder)
        pack.unpack()
        folder.mkdir(parents=True, exist_ok=True)
        again = options.again and not options.resumed
        late = lambda: time.time() - options.begun > options.seconds  # noqa: E731
        work = Work(folder, again, tuple(options.kernel), late, pack)
        try:
            for part in given or PARTS:
                print(f"== {part}", flush=True)
                getattr(work, part)()
                pack.write()
        except Lost:
            pack.write()
            print("the device's context is lost: on with a new process", flush=True)
            sys.exit(LOST)
    except (CommandError, InputError) as error:
        sys.exit(f"error: {error}")
    print(f"done in {time.time() - options.begun:.0f} s: {folder}")


def _folder() -> Path:
    from roofdsl.measure.gpu_driver import find_driver

    name = re.sub(r"[^a-z0-9]+", "-", str(find_driver().describe()["name"]).lower()).strip("-")
    return ROOT / "models" / "results" / f"{name}-{date.today().isoformat()}"


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]


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
    """The parts, each of which leaves alone what an earlier run of it left in `folder`."""

    def __init__(
        self, folder: Path, again: bool, names: tuple[str, ...], late: Callable[[], bool], pack: Pack | None = None
    ) -> None:
        self.folder, self.names, self.late = folder, names, late
        self.pack = pack or Pack(None, folder)
        self.begun = time.time() if again else 0.0

    def _missing(self, path: Path) -> bool:
        return not path.exists() or path.stat().st_mtime < self.begun

    def machine(self) -> None:
        """The device as a machine file."""
        from roofdsl.measure.characterize_gpu import characterize_gpu
        from roofdsl.measure.gpu_machine import gpu_machine_text
        from roofdsl.measure.machine_file import save_machine

        path, mark = self.folder / "machine.roof", self.folder / "machine.begun"
        if not self._missing(path):
            return
        if mark.exists() and mark.stat().st_mtime >= self.begun:
            print(f"left out: an earlier characterization did not end; `{mark}` away, and it is tried again")
            return
        try:
            with watched(mark, MOST_CHARACTERIZING):
                save_machine(path, gpu_machine_text(characterize_gpu()))
        except (CommandError, InputError):
            raise
        except Exception as error:  # of cupy and CUDA; the kernels can be measured all the same
            mark.write_text("", encoding="utf-8")
            print(f"no machine file: {type(error).__name__}: {_first_line(error)}", flush=True)
            if not _device_works():
                raise Lost from error

    def kernels(self) -> None:
        """Those of SIZES, in every variant, verified and timed: KERNEL.json; what cannot be run, with its reason."""
        self._measure_all([name for name in plan.SIZES if not self.names or name in self.names])

    def others(self) -> None:
        """As `kernels`, of all others."""
        self._measure_all([n for n in shipped() if n not in plan.SIZES and (not self.names or n in self.names)])

    def _measure_all(self, names: Sequence[str]) -> None:
        folder = self.folder / "kernels"
        folder.mkdir(exist_ok=True)
        every = shipped()
        for name in names:
            path, refused = folder / f"{name}.json", folder / f"{name}.refused.json"
            mark = folder / f"{name}.begun"
            if mark.exists():
                mark.unlink()
                self._refuse(refused, [f"it did not end within {MOST_SECONDS} s, or took the process with it"])
            if not self._missing(path) or not self._missing(refused):
                continue
            if self.late():
                print("out of time: run again for the rest")
                return
            with watched(mark, MOST_SECONDS):
                self._measure(fresh(every[name], name), path, refused)
            self.pack.write(now=False)

    def _measure(self, kernel: Kernel, path: Path, refusals: Path) -> None:
        """All variants at all sizes. Raises Lost where the device is of no more use to this process."""
        found: list[Measurement] = []
        refused: list[str] = []
        broken = False
        try:
            job = plan.job(kernel)
            refused += job.refused
        except (CommandError, InputError) as error:
            job = plan.Job(kernel, (), ())
            refused.append(_first_line(error))
        for variant, sizes in product(plan.VARIANTS, job.sizes):
            if broken:
                refused.append(f"{variant}: not run, since the device was lost before")
            if any(reason.startswith(f"{variant}: ") for reason in refused):
                continue
            try:
                found += measure_runs([Run(kernel, sizes, variant)], How("gpu", budget_s=1.0))
            except (CommandError, InputError) as error:
                refused.append(f"{variant}: {_first_line(error)}")
            except Exception as error:  # of cupy and CUDA; one kernel's fault is not to lose the others
                refused.append(f"{variant}: {type(error).__name__}: {_first_line(error)}")
                broken = not _device_works()
        if found:
            save(path, found)
        if refused:
            self._refuse(refusals, refused)
        print(f"{kernel.name}: {len(found)} measured, {len(refused)} refused", flush=True)
        if broken:
            raise Lost

    @staticmethod
    def _refuse(path: Path, reasons: Sequence[str]) -> None:
        text = json.dumps(list(dict.fromkeys(reasons)), indent=1, ensure_ascii=False)
        write_whole(path, text + "\n")

    def traffic(self) -> None:
        """DRAM and L2 traffic of one launch of the kernels of SIZES, read by ncu: KERNEL.csv."""
        ncu = shutil.which("ncu")
        if ncu is None:
            print("ncu is not there: no traffic is read")
            return
        (self.folder / "ncu").mkdir(exist_ok=True)
        for name, sizes in plan.SIZES.items():
            path = self.folder / "ncu" / f"{name}.csv"
            if (self.names and name not in self.names) or not self._missing(path) or self.late():
                continue
            at = ",".join(f"{n}={v}" for n, v in sizes[-1].items())
            variant = "tiled" if name == "matmul_tiled" else "naive"
            run = [sys.executable, "-m", "benchmarks.gpu.once", name, variant, at]
            command = [ncu, "--csv", "--clock-control", "none", "--metrics", ",".join(METRICS), *run]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_NCU_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"{name}: ncu takes longer than {_NCU_SECONDS} s")
                continue
            rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
            if done.returncode or len(rows) < 2:
                reason = next((x for x in (done.stdout + done.stderr).splitlines() if "ERR" in x), "no rows")
                print(f"{name}: ncu failed: {reason}")
                continue
            write_whole(path, "\n".join(rows) + "\n")

    def report(self) -> None:
        """Every measurement beside its prediction on the machine file: README.md and the figures."""
        from roofdsl.plot.board import save_figure
        from roofdsl.plot.kinds.roofline import draw_roofline
        from roofdsl.plot.roofline_points import overlay
        from roofdsl.plot.roofs import roofs_of

        machine = load_machine(str(self.folder / "machine.roof"))
        every = {name: fresh(checked, name) for name, checked in shipped().items()}
        compared: list[Comparison] = []
        refused: list[Refusal] = []
        for path in sorted((self.folder / "kernels").glob("*.json")):
            name = path.name.split(".")[0]
            if path.name.endswith(".refused.json"):
                reasons = json.loads(path.read_text(encoding="utf-8"))
                refused += [Refusal(name, "", str(reason)) for reason in reasons]
                continue
            if self.late():
                print("out of time: the report needs no GPU, and can be made anywhere")
                return
            try:
                measured = load(path)
                for warning in stale(list(every.values()), measured):
                    print(f"warning: {warning}")
                compared += compare_all([every[name]], measured, machine)
            except (CommandError, InputError, KeyError) as error:
                refused.append(Refusal(name, "", f"no comparison: {_first_line(error)}"))
        if not compared:
            raise CommandError(f"`{self.folder}` holds no measurements", "run the part `kernels` first")
        runs = tuple(Ran(c, class_of(every[c.prediction.kernel])) for c in compared)
        found = Report(machine, runs, tuple(refused))
        validation_figure.draw(found, self.folder / "ratios.svg")
        named = [c for c in compared if c.prediction.kernel in plan.SIZES and c.measurement.variant != "library"]
        types = tuple(dict.fromkeys(c.prediction.type for c in named if c.prediction.type is not None))
        if named:
            last = {(c.prediction.kernel, c.measurement.variant): c for c in named}
            points = [p for c in last.values() for p in overlay(c)]
            save_figure(self.folder / "overlay.svg", draw_roofline([roofs_of(machine, types)], points))
        title = f"# {machine.title}, {date.today().isoformat()}"
        pictures = "![Measured on predicted](overlay.svg)\n\n![Ratios](ratios.svg)"
        text = "\n\n".join([title, pictures, validation_report.section(found, "GPU")])
        write_whole(self.folder / "README.md", text + "\n")


if __name__ == "__main__":
    main()
