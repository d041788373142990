"""What every command prints with `--json` is what its schema says, key by key; and the schemas refuse anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator, ValidationError

from roofdsl.cli.main import cli, run
from roofdsl.tell.schemas.commands import COMMANDS, DEFINITIONS, answer_schema, schema_of

TPU = "--machine tpu_v5e --unit tensor"
SHARD = f"shard matmul_bdf --set B=512,D=4096,F=4096 --split D {TPU}"
PRINTED = (
    "check gemv --deep",
    "check {broken}",
    "derive gemv",
    "derive gemv --set n=8 --cache 32KiB --line 64B",
    "derive matmul --cache Z",
    "derive jacobi_2d --traffic once",
    "derive lstm_forward",
    "derive {several}",
    "derive spmv_csr --set n=10,m=10,nnz=20 --cache 1KiB --line 64B",
    "derive spmv_csr --data rowptr,col=banded:n=20,w=1",
    "bound matmul",
    "bound gemv --set n=100 --machine v100",
    "bound matmul --set n=20 --machine v100 --nested",
    "bound {several}",
    "predict gemv --machine v100 --set n=4096",
    "predict gemv --machine v100 --set n=4096 --traffic once",
    "predict gemv --machine v100 --set n=4096 --threads 128 --registers 64 --in-flight 16B",
    "predict gemm_f16 --machine v100 --set m=512,n=512,k=512 --unit tensor",
    "predict gemv --machine summit --set n=4096 --data DRAM0",
    "predict gemv --machine skylake_gold_6148 --set n=1000 --warm",
    "predict gemv --machine haswell_e5_2695v3 --set n=1000 --in-core stated",
    "predict gemv --machine haswell_e5_2695v3 --set n=1000 --cores 1",
    "predict lstm_forward --machine v100",
    "predict gemv --machine core_i7_950 --set n=1000 --energy",
    "predict {several} --machine gtx_580 --set n=100 --energy",
    "predict {whole} --machine gtx_580 --set n=100 --energy",
    "predict {several} --machine v100 --set n=100",
    "sol gemm_f16 --machine v100 --set m=512,n=512,k=512 --measured 12ms",
    "sol gemv --machine v100 --set n=512 --measured 1ns",
    "sol {several} --machine v100 --set n=100",
    "advise matmul --machine v100 --set n=64",
    "suite {several} --machine v100 --set n=100",
    "suite {several} --machine v100 --symbolic",
    "sweep gemv --machine v100 --set n=1..64:*2",
    "sweep gemv --machine v100 --set n=10,20 --cache 1MiB,2MiB",
    f"{SHARD} --devices 2 --over D",
    f"{SHARD} --devices 2,4",
    "collective all-gather --bytes 1GiB --among HBM0,HBM1,HBM2 --machine summit",
    "collective all-reduce --bytes 1MiB --machine tpu_v5e --devices 8 --latency 1us",
    f"threshold matmul_i8 --over B --set D=4096,F=4096 {TPU}",
    f"threshold matmul_i8 --over B --formula {TPU}",
    "simulate gemv --cache 1KiB --set n=10",
    "simulate spmv_csr --data rowptr,col=banded:n=20,w=1 --cache 1KiB --line 64B",
    "predict spmv_csr --machine haswell_e5_2695v3 --data rowptr,col=banded:n=20,w=1",
    "simulate gemv --machine v100 --set n=10 --histogram",
    "simulate {several} --cache 1KiB --set n=10",
    "emit gemv --to c",
    "emit gemv --to cuda --set n=64",
    "emit {copies} --to cuda",
    "emit {several} --to python",
    "exercise list",
    "exercise show gemv",
    "exercise show five-point --hint 2 --solution",
    "exercise check gemv W=2*n^2 Q=x",
    "machines",
    "machines show summit",
    "machines show haswell_e5_2695v3",
    "machines show l40",
    "machines flow summit --from DRAM0 --to HBM3,HBM4,HBM5",
    pytest.param("models", marks=pytest.mark.thorough),
    "cache info",
    "import ncu tests/profiler/data/long.csv",
    "import ncu tests/profiler/data/nvprof_summary.csv tests/profiler/data/nvprof_metrics.csv",
    "measure {several} --set n=100 --budget 0.02",
    "measure {whole} --set n=100 --budget 0.02",
    "validate {several} --machine v100 --set n=100 --budget 0.02",
    "validate {whole} --machine v100 --set n=100 --budget 0.02",
    "validate gpp_divides --machine v100 --results gpp_deck --point gpp_divides=v1.collapse3 "
    "--set bands=10,ngpown=20,ncouls=30",
)
SEVERAL = """\
kernel scale(n):
    in a: f64[n]
    out b: f64[n]
    for i in range(n):
        b[i] = 2 * a[i]

kernel total(n):
    in a: f32[n]
    out s: f32
    s = 0
    for i in range(n):
        s += a[i]
"""
PROGRAM = SEVERAL + "\nprogram both(n):\n    repeat 2:\n        run scale(n)\n    run total(n)\n"
COPIES = """\
kernel rows(m, n):
    in A: f64[n, m]
    out B: f64[n, m]
    temp T: f64[m]
    for i in range(n):
        for j in range(m):
            T[j] = 2 * A[i, j]
        for j in range(m):
            B[i, j] = T[m - 1 - j]
"""
WRONG = "kernel wrong(n):\n    in a: f64[n]\n    for i in range(n):\n        b[i] = a[i]\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("kernels")
    texts = {"several": SEVERAL, "whole": PROGRAM, "broken": WRONG, "copies": COPIES}
    for name, text in texts.items():
        (folder / f"{name}.roof").write_text(text)
    return {name: str(folder / f"{name}.roof") for name in texts} | {"whole": str(folder / "whole.roof:both")}


def named(line: str) -> str:
    """The command of a line: `machines show` rather than `machines`."""
    return max((name for name in COMMANDS if f"{line} ".startswith(f"{name} ")), key=len)


@pytest.mark.spread(16)
@pytest.mark.parametrize("line", PRINTED)
def test_what_is_printed_is_what_the_schema_says(
    line: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        run([*line.format(**files).split(), "--json"])
    captured = capsys.readouterr()
    assert captured.out, captured.err
    document = json.loads(captured.out)
    validator = Draft202012Validator(schema_of(named(line)))
    assert [deepest(e) for e in validator.iter_errors(document)] == []
    assert document["schema"] == COMMANDS[named(line)][0]
    refused = sum(not validator.is_valid(spoiled) for spoiled in spoilt(document))
    assert refused == len(list(spoilt(document)))


def deepest(error: ValidationError) -> str:
    """Where it is wrong: of several alternatives, in the one that goes deepest."""
    while error.context:
        error = max(error.context, key=lambda e: len(e.absolute_path))
    return f"{list(error.absolute_path)}: {error.message}"


def spoilt(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document with a key too many, without its schema, and with a list or number in place of a text."""
    yield {**document, "surprise": 1}
    yield {key: value for key, value in document.items() if key != "schema"}
    yield {**document, "schema": "roofdsl.other/1"}
    for key, value in document.items():
        if isinstance(value, str | bool | int | float):
            yield {**document, key: [value]}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            changed = deepcopy(document)
            changed[key][0]["surprise"] = 1
            if "columns" not in document:  # the columns of a sweep are named by its parameters
                yield changed


def test_every_command_with_json_has_a_schema() -> None:
    found = set()
    todo: list[tuple[str, click.Command]] = [("", cli)]
    context = click.Context(cli)
    while todo:
        name, command = todo.pop()
        if any(p.name == "as_json" for p in command.params):
            found.add(name)
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                inner = command.get_command(context, each)
                assert inner is not None
                todo.append((f"{name} {each}".strip(), inner))
    assert found == set(COMMANDS)
    assert found == {named(line) for line in PRINTED if isinstance(line, str)} | {"models"}


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", COMMANDS)
def test_schemas_are_themselves_valid_and_closed(name: str) -> None:
    for schema in (schema_of(name), answer_schema(name)):
        Draft202012Validator.check_schema(schema)
        for part in parts(schema):
            if part.get("type") == "object" and "properties" in part:
                assert part["additionalProperties"] is False
                assert set(part["required"]) <= set(part["properties"])


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object within a schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts(value)


def test_every_definition_is_used() -> None:
    used = {name for command in COMMANDS for name in schema_of(command).get("$defs", {})}
    assert used == set(DEFINITIONS)


def test_the_command_prints_and_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "machines", "show"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of("machines show")
    assert run(["schema"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == ["command document", *(f"{name} {document}" for name, (document, _) in COMMANDS.items())]
    assert run(["schema", "predit"]) == 2
    assert "did you mean `predict`?" in capsys.readouterr().err


def test_stored_results_have_the_schema_of_measure(tmp_path: Path, files: dict[str, str]) -> None:
    stored = tmp_path / "result.json"
    assert run(["measure", files["several"], "--set", "n=100", "--budget", "0.02", "-o", str(stored)]) == 0
    Draft202012Validator(schema_of("measure")).validate(json.loads(stored.read_text()))


def test_an_answer_may_be_an_error() -> None:
    validator = Draft202012Validator(answer_schema("predict"))
    assert validator.is_valid({"error": {"status": 2, "message": "no", "help": None}})
    assert validator.is_valid({"error": {"status": None, "message": "too long"}})
    assert not validator.is_valid({"error": {"status": 2}})
    assert not validator.is_valid({})
