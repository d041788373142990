"""`benchmarks/gpu/run.sh [--again] [FOLDER] [PART...]`: see there."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from benchmarks import validation_report
from benchmarks.gpu.plan import SIZES, VARIANTS, jobs
from benchmarks.kernels import ROOT, fresh, shipped
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.machine.find import load_machine
from roofdsl.measure.atomic import write_whole
from roofdsl.measure.results import Measurement, load, save
from roofdsl.validate.compare import Comparison
from roofdsl.validate.run import How, Run, compare_all, measure_runs, stale

PARTS = ("machine", "kernels", "traffic", "report")
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu/run.sh", description=__doc__)
    parser.add_argument("folder", nargs="?", help="by default models/results/DEVICE-DATE")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; by default all")
    parser.add_argument("--again", action="store_true", help="run parts again whose files are there")
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--seconds", type=float, default=420, help="after which no more kernels are begun")
    options = parser.parse_args()
    given = [options.folder, *options.parts] if options.folder in PARTS else options.parts
    unknown = [p for p in given if p not in PARTS]
    if unknown:
        parser.error(f"no part is named {unknown[0]}; there are {', '.join(PARTS)}")
    begun = time.monotonic()
    try:
        folder = Path(options.folder) if options.folder and options.folder not in PARTS else _folder()
        folder.mkdir(parents=True, exist_ok=True)
        work = Work(folder, options.again, tuple(options.kernel), lambda: time.monotonic() - begun > options.seconds)
        for part in given or PARTS:
            print(f"== {part}", flush=True)
            getattr(work, part)()
    except (CommandError, InputError) as error:
        sys.exit(f"error: {error}")
    print(f"done in {time.monotonic() - begun:.0f} s: {folder}")


def _folder() -> Path:
    from roofdsl.measure.gpu_driver import find_driver

    name = re.sub(r"[^a-z0-9]+", "-", str(find_driver().describe()["name"]).lower()).strip("-")
    return ROOT / "models" / "results" / f"{name}-{date.today().isoformat()}"


class Work:
    """The parts, each of which leaves alone what an earlier run of it left in `folder`."""

    def __init__(self, folder: Path, again: bool, names: tuple[str, ...], late: Callable[[], bool]) -> None:
        self.folder, self.again, self.names, self.late = folder, again, names, late

    def _missing(self, path: Path) -> bool:
        return self.again or not path.exists()

    def machine(self) -> None:
        """The device as a machine file."""
        from roofdsl.measure.characterize_gpu import characterize_gpu
        from roofdsl.measure.gpu_machine import gpu_machine_text
        from roofdsl.measure.machine_file import save_machine

        path = self.folder / "machine.roof"
        if self._missing(path):
            save_machine(path, gpu_machine_text(characterize_gpu()))

    def kernels(self) -> None:
        """Every variant of every kernel, verified and timed: KERNEL.json; what cannot be run, with its reason."""
        for job in jobs(self.names):
            path = self.folder / "kernels" / f"{job.kernel.name}.json"
            if not self._missing(path):
                continue
            if self.late():
                print("out of time: run again for the rest")
                return
            path.parent.mkdir(exist_ok=True)
            found: list[Measurement] = []
            refused = list(job.refused)
            for variant in VARIANTS:
                for sizes in job.sizes:
                    try:
                        found += measure_runs([Run(job.kernel, sizes, variant)], How("gpu", budget_s=1.0))
                    except (CommandError, InputError) as error:
                        refused.append(f"{variant}: {str(error).split(chr(10))[0]}")
                        break
            if found:
                save(path, found)
            if refused:
                text = json.dumps(list(dict.fromkeys(refused)), indent=1, ensure_ascii=False)
                write_whole(path.with_suffix(".refused.json"), text + "\n")
            print(f"{job.kernel.name}: {len(found)} measured, {len(refused)} refused", flush=True)

    def traffic(self) -> None:
        """DRAM and L2 traffic of one launch of the kernels of SIZES, read by ncu: KERNEL.csv."""
        ncu = shutil.which("ncu")
        if ncu is None:
            print("ncu is not there: no traffic is read")
            return
        (self.folder / "ncu").mkdir(exist_ok=True)
        for name, sizes in SIZES.items():
            path = self.folder / "ncu" / f"{name}.csv"
            if (self.names and name not in self.names) or not self._missing(path) or self.late():
                continue
            at = ",".join(f"{n}={v}" for n, v in sizes[-1].items())
            variant = "tiled" if name == "matmul_tiled" else "naive"
            run = [sys.executable, "-m", "roofdsl", "measure", name, "--backend", "gpu", "--variant", variant]
            run += ["--set", at, "--repeats", "1"]
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
        from roofdsl.plot.content import overlay, roofs_of
        from roofdsl.plot.roofline import save_roofline

        machine = load_machine(str(self.folder / "machine.roof"))
        every = {name: fresh(checked, name) for name, checked in shipped().items()}
        compared: list[Comparison] = []
        refused: list[validation_report.Refusal] = []
        for path in sorted((self.folder / "kernels").glob("*.json")):
            name = path.name.split(".")[0]
            if path.name.endswith(".refused.json"):
                reasons = json.loads(path.read_text(encoding="utf-8"))
                refused += [validation_report.Refusal(name, "", str(reason)) for reason in reasons]
                continue
            measured = load(path)
            for warning in stale(list(every.values()), measured):
                print(f"warning: {warning}")
            compared += compare_all([every[name]], measured, machine)
        if not compared:
            raise CommandError(f"`{self.folder}` holds no measurements", "run the part `kernels` first")
        found = validation_report.Report(machine, tuple(compared), tuple(refused), 0.0)
        validation_report.draw(found, self.folder / "ratios.svg")
        named = [c for c in compared if c.prediction.kernel in SIZES and c.measurement.variant != "library"]
        types = tuple(dict.fromkeys(c.prediction.type for c in named if c.prediction.type is not None))
        if named:
            last = {(c.prediction.kernel, c.measurement.variant): c for c in named}
            points = [p for c in last.values() for p in overlay(c)]
            save_roofline(self.folder / "overlay.svg", [roofs_of(machine, types)], points)
        title = f"# {machine.title}, {date.today().isoformat()}"
        pictures = "![Measured on predicted](overlay.svg)\n\n![Ratios](ratios.svg)"
        text = "\n\n".join([title, pictures, validation_report.section(found, "GPU")])
        write_whole(self.folder / "README.md", text + "\n")


if __name__ == "__main__":
    main()
