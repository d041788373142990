"""Types in annotations of Python functions: `A: f64["n", "m"]` is an array, `alpha: f64` a scalar of numpy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("f64", "f32", "tf32", "f16", "bf16", "f8", "i64", "i32", "i16", "i8", "c128", "c64")


class Array:
    """An element type, with the sizes of an array: numbers, and texts such as "n", "2*m + 1" or "n, m"."""

    def __init__(self, type_: str, sizes: tuple[Any, ...] = ()) -> None:
        self.type, self.sizes = type_, sizes

    def __getitem__(self, sizes: Any) -> Array:
        return Array(self.type, sizes if isinstance(sizes, tuple) else (sizes,))

    def __repr__(self) -> str:
        return f"{self.type}[{', '.join(map(str, self.sizes))}]" if self.sizes else self.type


TYPES = {name: Array(name) for name in NAMES}
