"""Calls compiled functions on data in files, in a separate process, since a crash of theirs must not end the caller.

Run as a script with the name of a folder. `calls.json` in it lists calls: the library, the function, the `.npz` file of
its arrays, their names in the order of addresses, and the file for what the call leaves; `given` names arrays to be
taken from the file `before`, the result of an earlier call. Arrays that are written outside are reported in
`outside.json`.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

MARGIN = 512
"""Bytes before and after every array that a function must not touch."""


def main(folder: Path) -> None:
    """Makes the calls in order, and records each one before it is made."""
    outside: list[dict[str, Any]] = []
    for number, call in enumerate(json.loads((folder / "calls.json").read_text())):
        (folder / "reached").write_text(str(number))
        arrays = dict(np.load(folder / call["arrays"]))
        if call["given"]:
            before = np.load(folder / call["before"])
            arrays.update({name: before[name] for name in call["given"]})
        whole = {name: _guarded(array) for name, array in arrays.items()}
        addresses = [whole[name].ctypes.data + MARGIN for name in call["names"]]
        function = ctypes.CDLL(str(folder / call["library"]))[call["function"]]
        function.restype = None
        function((ctypes.c_void_p * max(len(addresses), 1))(*addresses))
        for name, array in arrays.items():
            raw = whole[name]
            if (raw[:MARGIN] != 0xA5).any() or (raw[MARGIN + array.nbytes :] != 0xA5).any():
                outside.append({"call": number, "name": name})
            arrays[name] = raw[MARGIN : MARGIN + array.nbytes].view(array.dtype).reshape(array.shape)
        np.savez(folder / call["result"], **arrays)
    (folder / "outside.json").write_text(json.dumps(outside))


def _guarded(array: Any) -> Any:
    raw = np.full(array.nbytes + 2 * MARGIN, 0xA5, np.uint8)
    raw[MARGIN : MARGIN + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    return raw


if __name__ == "__main__":
    main(Path(sys.argv[1]))
