"""Small loops in assembly, assembled and loaded by llvmlite, which comes with numba: no C compiler is needed.

Only this project's own texts are assembled; nothing that a user writes gets here.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.array_placement import PAGE

Loop = Callable[[int, int], None]
"""A loop: the address of a buffer and the number of rounds."""


def is_known() -> bool:
    """Whether this processor has the instructions that are measured here."""
    return platform.machine().lower() in ("x86_64", "amd64") and "avx2" in features() and "fma" in features()


def features() -> frozenset[str]:
    import llvmlite.binding as llvm

    return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)


def loops(texts: Mapping[str, Sequence[str]], before: Mapping[str, Sequence[str]]) -> dict[str, Loop]:
    """Functions that repeat each text in a loop.

    The buffer's address is in %rdi and the rounds are in %rsi, which texts must not change, nor %rbx, %rbp and %r12 to
    %r15. `before` runs once, ahead of the loop. Raises CommandError if this processor lacks such instructions.
    """
    lines = [".text"]
    for name, text in texts.items():
        lines += [f".globl roofdsl_{name}", ".p2align 6", f"roofdsl_{name}:", *before.get(name, ())]
        lines += [".p2align 6", f".Lroofdsl_{name}:", *text, "decq %rsi", f"jnz .Lroofdsl_{name}", "vzeroupper", "retq"]
    module = "".join(f'module asm "{_escaped(line)}"\n' for line in lines)
    for name in texts:
        module += f"declare void @roofdsl_{name}(ptr, i64)\n"
        module += (
            f"define void @call_{name}(ptr %p, i64 %n) {{\n call void @roofdsl_{name}(ptr %p, i64 %n)\n ret void\n}}\n"
        )
    engine = _engine(module)
    found: dict[str, Loop] = {}
    for name in texts:
        function: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
            engine.get_function_address(f"call_{name}")
        )
        function.engine = engine  # the code lives as long as the engine
        found[name] = function
    return found


def page_from(address: int) -> int:
    """The first page boundary at or after an address."""
    return -(-address // PAGE) * PAGE


def _escaped(line: str) -> str:
    return line.replace("\\", "\\5C").replace('"', "\\22")


def _engine(module: str) -> Any:
    """The engine that holds a module's machine code."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=1, jit=True
    )
    try:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(module), target)
        engine.finalize_object()
    except RuntimeError as error:
        raise CommandError(f"this processor's instructions cannot be assembled: {str(error)[:100]}") from None
    return engine
