"""The shipped machines hold what the reference says, and every number of theirs says where it is from."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.format import format_source
from roofdsl.loops.load import read_source
from roofdsl.machine.find import (
    GROUPS,
    checked_file,
    find_model,
    load_machine,
    models_folder,
    shipped,
    shipped_machines,
    shipped_names,
    split_target,
)
from roofdsl.tell.as_text import to_text
from roofdsl.tell.machine import blocks, plain

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "reference/machines.json").read_text())["machines"]

# name here, name there, and for each published peak the type and class that it is
PEAKS = {
    "v100": ("V100", {"FP64": "f64 fma", "FP32": "f32 fma", "FP16": "f16 fma", "TC_FP16": "f16 tensor"}),
    "a100_80": (
        "A100-80",
        {
            "FP64": "f64 fma", "FP64_TC": "f64 tensor", "FP32": "f32 fma", "FP16": "f16 fma", "TF32_TC": "tf32 tensor",
            "TC_FP16": "f16 tensor", "TC_BF16": "bf16 tensor",
        },
    ),
    "h100_pcie": (
        "H100-PCIe",
        {"FP32": "f32 fma", "TC_FP16": "f16 tensor", "TC_FP8": "f8 tensor", "TF32_TC": "tf32 tensor"},
    ),
    **{
        ours: (
            theirs,
            {
                "FP64": "f64 fma", "FP64_TC": "f64 tensor", "FP32": "f32 fma", "FP16": "f16 fma",
                "TF32_TC": "tf32 tensor", "TC_FP16": "f16 tensor", "TC_BF16": "bf16 tensor", "TC_FP8": "f8 tensor",
            },
        )
        for ours, theirs in (("h100_sxm", "H100-SXM"), ("h200", "H200-141GB"))
    },
    "mi250x_gcd": (
        "MI250X (per GCD)",
        {
            "FP64": "f64 fma", "FP32": "f32 fma", "FP64_matrix": "f64 tensor", "FP32_matrix": "f32 tensor",
            "FP16_matrix": "f16 tensor", "FP16": "f16 tensor",
        },
    ),
    "mi300x": (
        "MI300X",
        {
            "FP64": "f64 fma", "FP64_matrix": "f64 tensor", "FP32": "f32 fma", "TF32": "tf32 tensor",
            "FP16_matrix": "f16 tensor", "FP8_matrix": "f8 tensor",
        },
    ),
}  # fmt: skip
CPUS = {
    "skylake_gold_6148": "Skylake-SP Gold 6148",
    "zen1_epyc_7451": "Zen1 EPYC 7451",
    "zen2_epyc_7452": "Zen2 EPYC 7452",
}


def giga(value: float) -> Fraction:
    return Fraction(str(value)) * 10**9


@pytest.mark.parametrize("name", PEAKS)
def test_published_peaks(name: str) -> None:
    theirs, classes = PEAKS[name]
    published = REFERENCE[theirs]["peak_tflops"]
    assert set(published) == set(classes)
    for key, entry in published.items():
        type_name, cls = classes[key].split()
        stated = load_machine(name).stated(type_name, cls)
        assert stated is not None, (name, key)
        assert stated.rate_per_s == 1000 * giga(entry["value"]), (name, key)


RELATIVES = {"h200": "gh200_96", "mi250x_gcd": "mi210"}
"""GPUs whose caches, latencies and launch time were measured on a close relative, mostly this one."""


@pytest.mark.parametrize(("name", "relative"), RELATIVES.items())
def test_numbers_of_a_relative_are_named_and_like_its_own(name: str, relative: str) -> None:
    """The caches of the H200 are those that an H200 NVL showed; the GH200's L2, measured otherwise, is 8 % slower."""
    machine, near = load_machine(name), load_machine(relative)
    assert (machine.latencies, machine.launch_s) == (near.latencies, near.launch_s)
    for own, other in zip(machine.caches, near.caches, strict=True):
        assert (own.size_bytes, own.line_bytes, own.sector_bytes) == (
            other.size_bytes, other.line_bytes, other.sector_bytes,
        )  # fmt: skip
        assert 1 <= own.bandwidth_bytes_per_s / other.bandwidth_bytes_per_s < Fraction(11, 10)
        assert "gpu-benches" in own.source
    assert machine.multiprocessor == near.multiprocessor


@pytest.mark.parametrize("name", PEAKS)
def test_published_memory_caches_and_units(name: str) -> None:
    reference, machine = REFERENCE[PEAKS[name][0]], load_machine(name)
    assert machine.main_memory.bandwidth_bytes_per_s == giga(reference["hbm_theoretical_GBs"]["value"])
    caches = {c.name: c for c in machine.caches}
    for level in ("L1", "L2"):
        measured = reference.get(f"{level}_measured_GBs") or reference.get(f"{level}_measured_GBs_all_SM")
        if measured is None:
            assert (level in caches) == (name in RELATIVES), level
        else:
            values = measured["value"]
            fastest = max(values.values()) if isinstance(values, dict) else values
            assert caches[level].bandwidth_bytes_per_s == giga(fastest)
    units = reference.get("SMs") or reference.get("CUs")
    assert units is None or machine.units == units["value"]
    launch = reference.get("launch_us")
    if launch:
        assert machine.launch_s == Fraction(str(launch["value"]["stream_back_to_back"])) / 10**6


def test_gh200_is_not_taken_for_an_h200() -> None:
    reference, machine = REFERENCE["GH200-96GB (file named h200)"], load_machine("gh200_96")
    assert machine.main_memory.bandwidth_bytes_per_s == giga(max(reference["hbm_measured_GBs"]["value"].values()))
    assert machine.peak("f32").per_s == 1000 * giga(reference["fp32_measured_TF"]["value"])
    assert load_machine("h200").main_memory.size_bytes == 141 * 10**9


@pytest.mark.parametrize("name", CPUS)
def test_processors(name: str) -> None:
    reference, machine = REFERENCE[CPUS[name]], load_machine(name)
    for key, type_name in (("FP64", "f64"), ("FP32", "f32")):
        assert machine.peak(type_name).per_s == giga(reference["peak_gflops_per_socket_nominal"][key]["value"])
    assert machine.main_memory.bandwidth_bytes_per_s == giga(reference["mem_theoretical_GBs_per_socket"]["value"])
    measured = reference["cache_measured_GBs_per_socket"]["value"]
    assert {c.name: c.bandwidth_bytes_per_s for c in machine.caches} == {k: giga(v) for k, v in measured.items()}
    ceilings = {c.name.split(",")[0]: c for c in machine.ceilings}
    for kernel in ("load", "triad"):
        value = giga(reference["mem_measured_GBs_per_socket"]["value"][kernel])
        assert getattr(ceilings[kernel], "bandwidth_bytes_per_s") == value  # noqa: B009


@pytest.mark.parametrize("machine", shipped_machines().values(), ids=lambda m: m.name)
def test_every_number_has_a_source(machine: Any) -> None:
    for thing in (*machine.peaks, *machine.caches, *machine.memories, *machine.ceilings, *machine.links):
        assert thing.source or machine.source, thing


@pytest.mark.parametrize("machine", shipped_machines().values(), ids=lambda m: m.name)
def test_sources_are_of_the_machine_and_all_of_them_are_shown(machine: Any) -> None:
    """The V100 named a page about an AMD GPU and a file of our tests, and sources of latencies were not shown."""
    text = Path(machine.origin).read_text(encoding="utf-8")
    text = text.split(f"machine {machine.name} ")[1].split("\nmachine ")[0]
    named = re.findall(r'source "([^"]*)"', text)
    shown = "\n".join(to_text(blocks(machine), width=1000))
    document = json.dumps(plain(machine), ensure_ascii=False)
    assert named
    for source in named:
        assert source in shown and source in document
        assert "tests/" not in source
        assert "mi250x" not in source.lower() or machine.name == "mi250x_gcd"


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", ["machines", *GROUPS])
def test_shipped_files_are_right_and_laid_out(kind: str) -> None:
    assert shipped(kind)
    for path in shipped(kind).values():
        source = read_source(path)
        assert checked_file(str(path)).warnings == ()
        assert format_source(source) == source.text, path


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", ["machines", *GROUPS])
def test_names_found_in_the_text_are_those_that_the_files_define(kind: str) -> None:
    defined = [(name, path) for path in shipped(kind).values() for name in checked_file(str(path)).own]
    assert list(shipped_names(kind).items()) == defined
    assert len(dict(defined)) == len(defined)


def test_the_folder_is_the_checkouts() -> None:
    assert models_folder() == Path(__file__).parents[2] / "models"


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("v10_deck", "there is no shipped machine `v10_deck`", "did you mean `v100_deck`?"),
        ("a100", "there is no shipped machine `a100`", "did you mean `a100_40`?"),
        ("zzz", "there is no shipped machine `zzz`", "`roofdsl machines` lists"),
        ("missing.roof", "`missing.roof` cannot be read", ""),
        ("{models}/machines/v100.roof", "has 5 machines", "v100_deck"),
        ("{models}/machines/v100.roof:v10", "has no machine `v10`", "did you mean `v100`?"),
        ("{models}/kernels/gemv.roof", "has no machine", ""),
    ],
)
def test_machines_that_cannot_be_found(text: str, message: str, help: str) -> None:
    with pytest.raises(CommandError) as error:
        load_machine(text.replace("{models}", str(models_folder())))
    assert message in error.value.message
    assert help in error.value.help


def test_a_machine_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.roof"
    path.write_text("machine mine:\n    peak f64 1 TFLOP/s\n    memory M 1 GB, 1 GB/s\n")
    assert load_machine(str(path)) == load_machine(f"{path}:mine")
    assert load_machine(str(path)).origin == str(path)


@pytest.mark.parametrize("text", ["mine", "mine.rof"])
def test_a_file_whose_ending_is_missing_or_misspelt_is_named(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.roof").touch()
    for find in (find_model, load_machine):
        with pytest.raises(CommandError) as error:
            find(text)
        assert error.value.help == "did you mean the file `mine.roof`?"


def test_a_colon_may_belong_to_the_path(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.write_text("")
    assert split_target(str(path)).name is None
    assert split_target("f.roof:k").name == "k"
    assert split_target(":k").path == ":k"


@pytest.mark.parametrize("name", ["v100", "a100_80", "a100_40", "h100_sxm", "h100_pcie", "h200", "gh200_96"])
def test_what_a_multiprocessor_holds(name: str) -> None:
    """CUDA C programming guide, table of technical specifications: the same for 7.0, 8.0 and 9.0 but shared memory."""
    machine = load_machine(name)
    own = machine.multiprocessor
    assert own is not None
    assert (own.warp, own.warps, own.blocks, own.block_threads, own.registers) == (32, 64, 32, 1024, 65536)
    assert own.shared_bytes == {"v": 96, "a": 164, "h": 228, "g": 228}[name[0]] * 1024
    assert all((c.line_bytes, c.sector_bytes) in {(128, 32), (64, 32)} for c in machine.caches)


PUBLISHED = {
    "a100_40": (36.0, 213.0, 572.2, 1410), "a100_80": (33.0, 205.1, 549.5, 1410),
    "h100_pcie": (34.1, 265.5, 649.9, 1755), "gh200_96": (32.0, 280.2, 678.6, 1980),
    "a40": (33.0, 250.4, 546.9, 1740), "l40": (34.0, 273.6, 620.5, 2490),
    "mi210": (128.0, 250.0, 588.0, 1700), "mi300x": (119.5, 213.0, 883.0, 2092),
    "v100_pcie": (30.0, 214.4, 428.0, 1380),
}  # fmt: skip
"""Cycles of a pointer chase in L1, L2 and the memory, and MHz, of gpu-benches (Ernst, and the fork of xxrjun)."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_latencies_are_the_published_cycles(name: str) -> None:
    *cycles, mhz = PUBLISHED[name]
    machine = load_machine(name)
    stated = [float(time) * 1e9 for _, time in machine.latencies]
    assert [level for level, _ in machine.latencies] == ["L1", "L2", machine.main_memory.name]
    assert stated == pytest.approx([1e3 * c / mhz for c in cycles], rel=0.001)
    assert stated == sorted(stated)


@pytest.mark.parametrize("name", ["mi210", "mi300x"])
def test_what_a_compute_unit_holds(name: str) -> None:
    """8 waves of 64 threads on each of 4 SIMDs, 512 KiB of vector registers, 64 KiB of local memory."""
    own = load_machine(name).multiprocessor
    assert own is not None and own.warps is not None and own.registers is not None
    assert (own.warp, own.warps, own.schedulers, own.shared_bytes) == (64, 4 * 8, 4, 64 << 10)
    assert own.registers * 4 == 512 << 10
