"""What commands do beyond what they print: statuses, streams, files, imports, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roofdsl.cli.main import COMMANDS, run
from roofdsl.cli.options import choose_all, parse_steps
from roofdsl.lang.diagnostics import CommandError
from tests.cli.conftest import ROOT, Run

WRONG = "kernel k(n):\n    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i] + C[i]\n"
UGLY = "kernel k( n ):\n  in A:f64[n]\n  out B:f64[n]\n  for i in range(n):\n    B[i]=A[i]\n"
NEAT = "kernel k(n):\n    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i]\n"


def test_check_tells_errors_and_has_status_1(roofdsl: Run) -> None:
    result = roofdsl("check", "-", stdin=WRONG)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("<stdin>:5:")


def test_check_json(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "wrong.roof"
    path.write_text(WRONG)
    result = roofdsl("check", "--json", str(path), "models/kernels/gemv.roof")
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document["schema"] == "roofdsl.check/1"
    (found,) = document["diagnostics"]
    keys = {"file", "line", "column", "end_line", "end_column", "severity", "code", "message", "help"}
    assert set(found) == keys
    assert (found["file"], found["line"], found["severity"], found["code"]) == (str(path), 5, "error", "name-unknown")


def test_check_of_a_missing_file_still_checks_the_others(roofdsl: Run) -> None:
    result = roofdsl("check", "missing.roof", "models/kernels/gemv.roof")
    assert result.returncode == 2
    assert "gemv.roof: ok" in result.stdout
    assert "`missing.roof` cannot be read" in result.stderr


@pytest.mark.spread(2)
@pytest.mark.parametrize("command", ["check", "fmt", "predict"])
def test_what_is_no_text_is_an_input_error(command: str, roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "binary.roof"
    path.write_bytes(b"kernel \xff\xfe\n")
    more = ["--machine", "v100"] if command == "predict" else []
    result = roofdsl(command, str(path), *more)
    assert result.returncode == 1
    assert "file-encoding" in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_errors_of_a_kernel_or_machine_file_are_told_with_status_1(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "wrong.roof"
    path.write_text(WRONG + "\nmachine m:\n    peak f64 1 GB/s\n    memory M 1 GB, 1 GB/s\n")
    for args in (("predict", str(path), "--machine", "v100"), ("predict", "gemv", "--machine", str(path))):
        result = roofdsl(*args)
        assert (result.returncode, result.stdout) == (1, "")
        assert "name-unknown" in result.stderr
        assert "unit-kind" in result.stderr


OUTSIDE = "kernel k(n):\n    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i + 1]\n"


def test_check_deep_and_predict_see_subscripts_out_of_bounds(roofdsl: Run) -> None:
    assert roofdsl("check", "-", stdin=OUTSIDE).returncode == 0
    deep = roofdsl("check", "--deep", "-", stdin=OUTSIDE, fresh=True)
    assert (deep.returncode, deep.stderr) == (1, "")
    assert deep.stdout.startswith("<stdin>:5:")
    predicted = roofdsl("predict", "-", "--machine", "v100", "--set", "n=8", stdin=OUTSIDE, fresh=True)
    assert (predicted.returncode, predicted.stdout) == (1, "")
    assert predicted.stderr.startswith("<stdin>:5:")


def test_check_deep_says_that_other_errors_come_first(roofdsl: Run) -> None:
    """Else the file would seem to have no other error."""
    result = roofdsl(
        "check", "--deep", "-", stdin=f"{OUTSIDE}\n{OUTSIDE.replace('k(n)', 'l(n)').replace('= A[', '= X[')}"
    )
    assert result.returncode == 1 and "name-unknown" in result.stdout and "subscript-bounds" not in result.stdout
    assert result.stdout.splitlines()[-1] == "<stdin>: correct these errors first; --deep has checked nothing yet"


def test_check_deep_takes_numbers_for_constants(roofdsl: Run) -> None:
    text = NEAT.replace("k(n)", "k(n, const s)").replace("B[i]", "B[i // s]")
    assert roofdsl("check", "-", stdin=text).returncode == 0
    assert "--set s=" in roofdsl("check", "--deep", "-", stdin=text).stderr
    assert roofdsl("check", "--deep", "--set", "s=2", "-", stdin=text).returncode == 0


@pytest.mark.thorough
def test_a_page_is_made_with_standard_error_closed(tmp_path: Path) -> None:
    """Steps are told on a terminal only, and there may be no stream at all."""
    page = tmp_path / "page.html"
    command = f"{sys.executable} -m roofdsl explore gemv --machine v100 --set n=64 -o {page} 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=ROOT, check=False, timeout=120).returncode == 0
    assert page.stat().st_size > 50_000


@pytest.mark.thorough
def test_shipped_kernels_pass_the_deep_check(roofdsl: Run) -> None:
    files = [str(p) for p in (ROOT / "models/kernels").glob("*.roof")]
    assert roofdsl("check", "--deep", *files).returncode == 0


@pytest.mark.thorough
def test_fmt_rewrites_and_checks(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "ugly.roof"
    path.write_text(UGLY)
    assert roofdsl("fmt", "--check", str(path)).returncode == 1
    assert path.read_text() == UGLY
    assert roofdsl("fmt", str(path)).returncode == 0
    assert path.read_text() == NEAT
    assert roofdsl("fmt", "--check", str(path)).returncode == 0
    assert roofdsl("fmt", "-", stdin=UGLY).stdout == NEAT
    assert roofdsl("fmt", "-", stdin=WRONG + "(").returncode == 1


def test_predict_reads_standard_input_and_machines_from_files(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.roof"
    path.write_text("machine mine:\n    peak f64 1 TFLOP/s\n    memory M 1 GB, 1 GB/s\n")
    text = (ROOT / "models/kernels/dot.roof").read_text().replace(": f16", ": f64")
    for machine in (str(path), f"{path}:mine"):
        result = roofdsl("predict", "-:dot", "--machine", machine, "--set", "n=10", "--json", stdin=text)
        document = json.loads(result.stdout)
        assert (document["kernel"], document["work_flops"], document["machine"]) == ("dot", 20, "mine")


def test_several_kernels_make_a_list(roofdsl: Run) -> None:
    result = roofdsl("predict", "models/kernels/stream.roof", "--machine", "v100", "--set", "n=64", "--json")
    document = json.loads(result.stdout)
    assert document["schema"] == "roofdsl.predict/1"
    assert [d["kernel"] for d in document["kernels"]] == ["copy", "scale", "triad"]
    copy = document["kernels"][0]
    assert (copy["work_flops"], copy["intensity"], copy["peak_flops"]) == (0, None, None)
    assert copy["bytes_per_s"] > 0


def test_a_program_is_predicted_as_one(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.roof"
    path.write_text(NEAT + "\nprogram steps(n = 4):\n    repeat 3:\n        run k(n)\n")
    result = roofdsl("predict", str(path), "--machine", "v100", "--set", "n=512", "--json")
    document = json.loads(result.stdout)
    assert (document["kernel"], document["launches"], document["parameters"]) == ("steps", 3, {"n": 512})


def test_settings_of_several_options_and_constants_are_settings(roofdsl: Run) -> None:
    result = roofdsl(
        "predict", "conv2d", "--machine", "v100_time_paper", "--set", "batch=1,s=3", "--set", "s=3", "--json"
    )
    document = json.loads(result.stdout)
    assert document["parameters"]["s"] == 3
    assert document["work_flops"] == 2 * 37**2 * 64 * 64 * 9


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "predict daxpy --machine v100 --set n=1e3 --set n=2000",
            "`sweep` takes several values, as `--set n=1000,2000`",
        ),
        ("derive daxpy --set n=1,n=2", "`n` is given twice, as 1 and 2; `sweep` takes several"),
        ("measure daxpy --set n=1 --set n=2", "`--at n=1 --at n=2` takes both"),
        ("measure daxpy --at n=1,n=2", "`--at n=1 --at n=2` takes both"),
        ("sweep daxpy --machine v100 --set n=1 --set n=2", "list its values in one `--set`: n=1,2,4"),
    ],
)
def test_two_values_of_a_parameter_are_refused(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last one counted, silently."""
    assert run(line.split()) in (1, 2)
    assert says in " ".join(capsys.readouterr().err.split())


def test_warnings_go_to_standard_error(roofdsl: Run) -> None:
    result = roofdsl("predict", "gemv", "--machine", "v100", "--set", "n=65536")
    assert result.returncode == 0
    assert result.stderr.startswith("warning: gemv touches 34.3608 GB, more than v100's HBM holds (16 GiB)")
    assert "warning" not in result.stdout


@pytest.mark.thorough
def test_figures_are_written(roofdsl: Run, tmp_path: Path) -> None:
    out = tmp_path / "roof.svg"
    sizes = ["--at", "n=64", "--at", "n=128"]
    result = roofdsl(
        "plot", "roofline", "gemv", "matmul", "transpose", "--machine", "v100_deck", *sizes, "-o", str(out)
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    text = out.read_text()
    assert text.startswith("<?xml")
    for label in ("gemv n=64 (launch)", "matmul n=128 (launch)", "HBM 900 GB/s", "ridge 7.78"):
        assert f"<!-- {label} -->" in text


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "derive"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: roofdsl {command}")


IMPORTS = "import sys; from roofdsl.cli.main import run; run({args!r}); print(*sorted(sys.modules), file=sys.stderr)"
HEAVY = {"numpy", "matplotlib", "numba", "sympy", "islpy", "rich", "importlib.metadata"}


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("args", "allowed"),
    [
        (["--help"], set()),
        (["check", "models/kernels/gemv.roof"], set()),
        (["machines"], set()),
        (["predict", "gemv", "--machine", "v100_textbook"], {"islpy"}),
        (["plot", "--help"], set()),
    ],
)
def test_heavy_imports_only_where_used(args: list[str], allowed: set[str]) -> None:
    code = IMPORTS.format(args=args)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert set(result.stderr.split()) & HEAVY <= allowed


def test_help_does_not_load_commands() -> None:
    result = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(args=["--help"])], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "roofdsl.loops.model" not in result.stderr.split()


@pytest.mark.parametrize(("args", "read"), [
    (["--help"], set()),
    (["predict", "gemv", "--machine", "v100_textbook"], set()),
    (["plot", "roofline", "--help"], {"roofdsl.plot.kinds", "roofdsl.plot.kinds.roofline"}),
])  # fmt: skip
def test_kinds_of_figures_are_read_when_they_are_asked_for(args: list[str], read: set[str]) -> None:
    code = IMPORTS.format(args=args)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    found = {name for name in result.stderr.split() if name.startswith("roofdsl.plot")}
    assert {name for name in found if ".kinds" in name} == read
    assert bool(found) == bool(read)


def test_a_reader_that_stops_is_no_error() -> None:
    command = f"set -o pipefail; {sys.executable} -u -m roofdsl machines show skylake_gold_6148 | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        ("machines show v100 >&-", 0, ""),
        ("check - <&-", 2, "error: there is no standard input\nhelp: give the name of a file\n"),
        ("fmt - <&-", 2, "error: there is no standard input\nhelp: give the name of a file\n"),
    ],
)
def test_closed_input_and_output(line: str, status: int, says: str) -> None:
    command = ["bash", "-c", f"exec {sys.executable} -m roofdsl {line}"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (result.returncode, result.stderr) == (status, says)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_quiet() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "roofdsl", "check", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "interrupted\n"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("derive matmul --cache 32 KiB", "--cache 32KiB"),
        ("derive matmul --line 64 B --json", "--line 64B"),
        ("derive matmul --cache=1.5 MiB", "--cache=1.5MiB"),
        ("predict matmul --set n=9 --machine v100 --latency 1 us", "--latency 1us"),
        ("derive matmul --cache 32", ""),
        ("derive matmul more --line 64", ""),
    ],
)
def test_a_unit_apart_from_its_number_has_a_hint(line: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    told = capsys.readouterr().err
    assert (f"help: a size or time is one argument: `{hint}`" in told) if hint else "one argument" not in told


def test_debug_shows_where() -> None:
    for place in (["--debug", "predict"], ["predict", "--debug"]):
        args = [sys.executable, "-m", "roofdsl", *place, "gemv", "--machine", "nothing"]
        result = subprocess.run(args, capture_output=True, text=True, cwd=ROOT, check=False)
        assert "Traceback" in result.stderr
        assert result.returncode != 0


def test_internal_errors_are_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import roofdsl.cli.predict as command
    from roofdsl.cli.main import run

    def broken(name: str) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(command, "load_machine", broken)
    assert run(["predict", "gemv", "--machine", "v100"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in error


def test_colour_only_on_terminals() -> None:
    pty = pytest.importorskip("pty")
    for no_color, styled in (("", True), ("1", False)):
        chunks: list[bytes] = []

        def read(fd: int, chunks: list[bytes] = chunks) -> bytes:
            data = os.read(fd, 4096)
            chunks.append(data)
            return data

        environment = dict(os.environ)
        os.environ["NO_COLOR"] = no_color
        stdout = os.dup(1)
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, 1)
            pty.spawn([sys.executable, "-m", "roofdsl", "machines", "show", "summit"], read)
        finally:
            os.dup2(stdout, 1)
            os.environ.clear()
            os.environ.update(environment)
        assert (b"\x1b[1m" in b"".join(chunks)) == styled


def test_check_of_a_name_that_is_not_there(roofdsl: Run) -> None:
    result = roofdsl("check", "models/kernels/gemv.roof:gemw")
    assert result.returncode == 2
    assert "no `gemw`" in result.stderr and "`gemv`" in result.stderr
    assert "is a folder" in roofdsl("check", "models").stderr


def test_files_take_their_own_parameters_of_those_given() -> None:
    found = choose_all(["gemv", "matmul_blocked"], {"n": 64}, ["b=4", "b=8"])
    assert [each for _, each in found] == [[{"n": 64}], [{"n": 64, "b": 4}, {"n": 64, "b": 8}]]
    (_, each), _ = choose_all(["gemv", "minplus"], {"n": 64, "size": 3})
    assert each == [{"n": 64, "size": 3}]  # what none of them knows stays, to be refused


@pytest.mark.thorough
def test_the_list_of_models_fits_a_terminal(roofdsl: Run) -> None:
    lines = roofdsl("models").stdout.splitlines()
    assert max(map(len, lines)) <= 96
    assert ["gemv", "n", "=", "4096"] in [line.split() for line in lines]


@pytest.mark.parametrize(("texts", "steps"), [
    ((), [{}]),
    (("n=64,b=8", "n=128"), [{"n": 64, "b": 8}, {"n": 128}]),
    (("n=16..64:*2",), [{"n": 16}, {"n": 32}, {"n": 64}]),
    (("n=1..2,b=4", "n=9"), [{"n": 1, "b": 4}, {"n": 2, "b": 4}, {"n": 9}]),
    (("n=1..2,b=8..16:+8",), [{"n": 1, "b": 8}, {"n": 1, "b": 16}, {"n": 2, "b": 8}, {"n": 2, "b": 16}]),
])  # fmt: skip
def test_steps_and_ranges(texts: tuple[str, ...], steps: list[dict[str, int]]) -> None:
    assert parse_steps(texts) == steps


@pytest.mark.parametrize(("text", "message"), [
    ("n=1..5000", "gives 5,000 sizes"), ("n=8..4", "ends before it begins"), ("n=1..8:2", "is not a step"),
])  # fmt: skip
def test_wrong_ranges(text: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        parse_steps((text,))


def test_sizes_at_which_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No launch, no floor, no point in a figure: the commands agree with `predict`."""
    file = tmp_path / "a.roof"
    file.write_text(
        "kernel a(n):\n    in x: f64[n]\n    out y: f64[n]\n"
        "    for i in range(1, n - 1):\n        y[i] = x[i - 1] + x[i + 1]\n"
    )
    given = [str(file), "--machine", "v100", "--set", "n=2"]
    for command in ("predict", "advise", "sol"):
        assert run([command, *given]) == 0, command
        assert "nothing is computed, and nothing moves" in capsys.readouterr().out.lower(), command
    assert run(["sol", *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["floor_s"] == 0
    figure = ["plot", "roofline", str(file), "--machine", "v100", "-o", str(tmp_path / "a.svg")]
    assert run([*figure, "--at", "n=2", "--at", "n=1000"]) == 0
    assert "n=2 is left out: nothing is computed" in capsys.readouterr().err
