"""Bytes that instructions move, against the widths that a disassembler writes beside their addresses."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from roofdsl.incore.assembly import Memory, read
from roofdsl.incore.operand_bytes import bytes_moved

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64") or not (shutil.which("gcc") and shutil.which("objdump")),
    reason="there is no assembler or disassembler for x86-64",
)

LINES = """
vcvtph2psx (%rdx,%r9,2), %ymm0
vcvtph2psx (%rdx), %zmm3
vcvtph2ps (%rdx), %xmm0
vcvtph2ps (%rdx), %zmm0
vcvtps2phxx (%rdx), %xmm0
vcvtps2phxy (%rdx), %xmm0
vcvtps2phx (%rdx), %ymm0
vcvtps2ph $4, %xmm0, (%rdx)
vcvtps2ph $4, %ymm0, (%rdx)
vcvtpd2psx (%rdx), %xmm0
vcvtpd2psy (%rdx), %xmm0
vcvtpd2ps (%rdx), %ymm0
vcvtps2pd (%rdx), %xmm0
vcvtps2pd (%rdx), %zmm0
vcvtss2sd (%rdx), %xmm0, %xmm0
vcvtsd2ss (%rdx), %xmm0, %xmm0
vcvtsh2ss (%rdx), %xmm0, %xmm0
vcvtsi2sdq (%rdx), %xmm0, %xmm0
vcvtsi2ssl (%rdx), %xmm0, %xmm0
vcvtusi2sdq (%rdx), %xmm0, %xmm0
vcvtdq2pd (%rdx), %ymm0
vcvtudq2ps (%rdx), %zmm0
vcvttpd2dqy (%rdx), %xmm0
vcvttps2udq (%rdx), %zmm0
vcvtqq2pd (%rdx), %zmm0
vcvtuqq2psy (%rdx), %xmm0
vcvttsd2si (%rdx), %rax
vcvttss2usi (%rdx), %eax
vmovss %xmm26, -116(%rsp)
vmovsd %xmm1, 8(%rsp)
vmovsh %xmm1, 8(%rsp)
vmovsh (%rdx), %xmm1
vmovd %xmm0, (%rdx)
vmovq %xmm0, (%rdx)
vmovups %ymm1, (%rsp)
vmovdqa64 %zmm1, (%rsp)
vmovhps %xmm0, (%rdx)
vpmovzxwd (%rdx), %zmm0
vpmovsxbw (%rdx), %ymm0
vpmovdw %zmm0, (%rdx)
vpmovdb %zmm0, (%rdx)
vpinsrw $1, (%rdx), %xmm0, %xmm0
vpextrw $1, %xmm0, (%rdx)
vextractf128 $1, %ymm0, (%rdx)
vfmadd231ss (%rdx), %xmm0, %xmm1
vfmadd231pd (%rdx), %zmm0, %zmm1
vucomiss (%rdx), %xmm0
movzwl (%rdx), %eax
movb %al, (%rdx)
addq %rax, (%rdx)
vpmaxsd (%rdx), %zmm0, %zmm1
vpminsd (%rdx), %ymm0, %ymm1
vpabsd (%rdx), %zmm0
vpdpbusd (%rdx), %zmm0, %zmm1
vpmaxsd (%rdx){1to16}, %zmm0, %zmm1
vpaddd (%rdx){1to16}, %zmm0, %zmm1
vpaddq (%rdx){1to8}, %zmm0, %zmm1
vaddpd (%rdx){1to8}, %zmm0, %zmm1
vaddps (%rdx){1to16}, %zmm0, %zmm1
vaddph (%rdx){1to32}, %zmm0, %zmm1
vcvtdq2pd (%rdx){1to8}, %zmm0
vcvtps2pd (%rdx){1to8}, %zmm0
vcvtpd2ps (%rdx){1to8}, %ymm0
vcvtpd2psy (%rdx){1to4}, %xmm1
vpternlogd $1, (%rdx){1to16}, %zmm0, %zmm1
vpcmpeqd (%rdx){1to16}, %zmm0, %k1
vshuff64x2 $1, (%rdx){1to8}, %zmm0, %zmm1
vpbroadcastb (%rdx), %zmm0
vpbroadcastw (%rdx), %zmm0
vpbroadcastd (%rdx), %zmm0
vbroadcastsd (%rdx), %zmm0
vbroadcastf128 (%rdx), %ymm0
vbroadcastf64x4 (%rdx), %zmm0
vpslld (%rdx), %ymm0, %ymm1
vpslld $3, (%rdx), %zmm1
vpsllvd (%rdx), %ymm0, %ymm1
"""
_BYTES = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}


def test_as_the_disassembler_says(tmp_path: Path) -> None:
    (tmp_path / "all.s").write_text(LINES)
    done = subprocess.run(
        ["gcc", "-c", "all.s", "-o", "all.o"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"the assembler is too old: {done.stderr[:200]}")
    listed = subprocess.run(
        ["objdump", "-d", "-M", "intel", "all.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    expected = [_BYTES[word] for word in re.findall(r"\b([A-Z]+) (?:PTR|BCST)", listed)]
    instructions = read("".join(f"\t{line}\n" for line in LINES.split("\n"))).instructions
    assert len(expected) == len(instructions) == 76
    for instruction, size in zip(instructions, expected, strict=True):
        (memory,) = (o for o in instruction.operands if isinstance(o, Memory))
        assert bytes_moved(instruction, memory) == size, instruction.name
