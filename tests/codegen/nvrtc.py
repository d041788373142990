"""NVRTC of one of NVIDIA's wheels (`nvidia-cuda-nvrtc`, with `nvidia-cuda-runtime` for the headers)."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Compiled(NamedTuple):
    """What NVRTC makes of a source: its errors, and the PTX if there are none."""

    errors: str
    ptx: str


def nvrtc() -> Callable[[str], Compiled] | None:
    """A compiler of CUDA for compute capability 9.0; None where the wheels are not installed."""
    spec = importlib.util.find_spec("nvidia") if importlib.util.find_spec("nvidia") else None
    roots = [Path(p) for p in spec.submodule_search_locations or []] if spec else []
    libraries = [p for root in roots for p in root.glob("*/lib/libnvrtc.so.*")]
    if not libraries:
        return None
    library = ctypes.CDLL(str(libraries[0]))
    includes = sorted({p.parent for root in roots for p in root.glob("*/include/**/cuda_fp16.h")})

    def text(program: ctypes.c_void_p, of: str) -> str:
        size = ctypes.c_size_t()
        getattr(library, f"nvrtcGet{of}Size")(program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        getattr(library, f"nvrtcGet{of}")(program, found)
        return found.value.decode()

    def run(source: str) -> Compiled:
        program = ctypes.c_void_p()
        library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        options = [b"--gpu-architecture=compute_90", *(f"-I{p}".encode() for p in includes)]
        failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        found = Compiled(text(program, "ProgramLog"), "") if failed else Compiled("", text(program, "PTX"))
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return found

    return run
