"""Coverage-guided fuzzing of one reader, by atheris: `python -m tests.hardening.guided READER [--seconds 60]`.

What made the program do other than read or refuse is written to a file, which `--try FILE` runs again without atheris.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

MISSING = "atheris is not installed: `pip install -e '.[fuzz]'` (Linux)"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.guided", description=__doc__)
    parser.add_argument("reader", help="such as kernels, layout, results, answers, cache; `list` names all")
    parser.add_argument("--seconds", type=int, default=60, help="how long")
    parser.add_argument("--found", type=Path, default=Path("."), help="the folder for what is found")
    parser.add_argument("--try", dest="again", type=Path, help="only this file, without atheris")
    options = parser.parse_args()
    if options.again is not None or options.reader == "list":
        from tests.hardening.readers import READERS

        if options.reader == "list":
            print("\n".join(READERS))
        else:
            READERS[options.reader][0](options.again.read_bytes())
        return
    try:
        import atheris
    except ImportError:
        sys.exit(MISSING)
    with atheris.instrument_imports(include=["roofdsl"]):
        from tests.hardening.readers import READERS, seeds

    if options.reader not in READERS:
        parser.error(f"no reader is named {options.reader}; there are {', '.join(READERS)}")
    with tempfile.TemporaryDirectory() as corpus:
        for k, seed in enumerate(seeds(options.reader)):
            (Path(corpus) / f"seed{k}").write_bytes(seed)
        limits = (f"-max_total_time={options.seconds}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=20000")
        found = f"-artifact_prefix={options.found}/{options.reader}-"
        atheris.Setup([sys.argv[0], *limits, found, corpus], READERS[options.reader][0])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
