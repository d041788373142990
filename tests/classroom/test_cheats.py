"""Kernels that would get points for nothing, and kernels of honest students that must not lose any."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.classroom.exercise_file import Exercise, course, load
from roofdsl.classroom.judge_answers import PartResult, judge
from roofdsl.classroom.student_version import StudentVersion

EXERCISES = course()

SUMS = "kernel column_sums(n):\n    in A: f64[n, n]\n    inout s: f64[n]\n"
FUSE = "kernel scaled_sum(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n"
MAXPLUS = "kernel longest(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
BLOCKED = "kernel product(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
TRANSPOSE = "kernel transpose(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
IJ = "    for i in range(n), j in range(n):\n        "
I1 = "    for i in range(n):\n        "
J1 = "    for j in range(n):\n        "
RIGHT_SUMS = IJ + "s[j] += A[i, j]\n"


def judged(exercise: Exercise | str, text: str, seed: int | None = 7) -> PartResult:
    """What the first version of an exercise answers to a kernel."""
    own = EXERCISES[exercise] if isinstance(exercise, str) else exercise
    version = StudentVersion(own, {name: values[0] for name, values in own.vary.items()}, "", seed)
    return next(p for p in judge(version, {"kernel": text}).parts if p.id == "kernel")


CHEATS = {
    "an error bound beyond all values": ("interchange", SUMS + J1 + "s[j] = s[j] + 1e300 - 1e300\n"),
    "the same in a fusion": ("fuse", FUSE + I1 + "y[i] = y[i] + 1e300 - 1e300\n"),
    "the same in a product": (
        "write-blocked",
        BLOCKED + "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] = C[i, j] + 1e300 - 1e300\n",
    ),
    "the same in a transpose": ("write-transpose", TRANSPOSE + IJ + "B[i, j] = A[i, j] + 1e300 - 1e300\n"),
    "cancellation that loses most digits": ("fuse", FUSE + I1 + "y[i] = (y[i] + a * x[i] + 1e12) - 1e12\n"),
    "nothing at all": ("interchange", SUMS + J1 + "s[j] += 0\n"),
    "constants": ("interchange", SUMS + J1 + "s[j] = -3.9503117527645166\n"),
    "no number": ("fuse", FUSE + I1 + "y[i] = y[i] + (a - a) / (a - a)\n"),
    "infinities": ("fuse", FUSE + I1 + "y[i] = 1 / (a - a)\n"),
    "huge values": ("fuse", FUSE + I1 + "y[i] = 1e308 * x[i] * a\n"),
    "a temporary of one byte": (
        "fuse",
        FUSE + "    temp t: f8[n]\n" + I1 + "t[i] = a * x[i]\n" + I1 + "y[i] += t[i]\n",
    ),
    "a matrix kept in half precision": (
        "interchange",
        SUMS + "    temp t: f16[n, n]\n" + IJ + "t[i, j] = A[i, j]\n" + IJ + "s[j] += t[i, j]\n",
    ),
    "an array that is left out of a maximum": (
        "write-maxplus",
        MAXPLUS
        + IJ
        + "C[i, j] = A[i, 0] + B[0, j]\n    for i in range(n), k in range(1, n), j in range(n):\n"
        + "        C[i, j] max= A[i, k] + B[k, j]\n",
    ),
    "one pass too few": (
        "write-maxplus",
        MAXPLUS + "    for i in range(n), k in range(n - 1), j in range(n):\n        C[i, j] max= A[i, k] + B[k, j]\n",
    ),
    "a maximum cut off at what data reach": (
        "write-maxplus",
        MAXPLUS + "    for i in range(n), k in range(n), j in range(n):\n"
        "        C[i, j] max= min(A[i, k] + B[k, j], 2.0)\n",
    ),
    "operations that pad W": ("interchange", SUMS + IJ + "s[j] += A[i, j] * 1.0\n"),
    "loops without passes that pad W": (
        "write-blocked",
        BLOCKED + "    for i in range(n), j in range(n), k in range(n), z in range(k, k):\n"
        "        C[i, j] += A[i, k] * B[k, j]\n",
    ),
    "an empty branch": (
        "interchange",
        SUMS + "    if n > 1000000:\n        for j in range(n):\n" + "    " * 3 + "s[j] += A[0, j]\n",
    ),
    "a branch on the size": ("interchange", SUMS + J1 + "if j >= n:\n            s[j] += A[0, j]\n"),
    "an output that is read": ("write-transpose", TRANSPOSE + IJ + "B[i, j] = B[i, j]\n"),
    "half of an output": (
        "write-transpose",
        TRANSPOSE + "    for i in range(n // 2), j in range(n):\n        B[j, i] = A[i, j]\n",
    ),
    "an array of one's own as input": (
        "fuse",
        FUSE.replace("x: f64[n]", "x: f64[n], z: f64[n]") + I1 + "y[i] += z[i]\n",
    ),
    "another type": ("fuse", FUSE.replace("f64", "f8") + I1 + "y[i] += a * x[i]\n"),
    "a convention of one's own": (
        "fuse",
        FUSE.replace("\n    in a", "\n    traffic once\n    in a")
        + "    temp t: f64[n]\n"
        + I1
        + "t[i] = a * x[i]\n"
        + I1
        + "y[i] += t[i]\n",
    ),
    "an assumption that is false": (
        "fuse",
        FUSE.replace("\n    in a", "\n    assume n >= 1000000\n    in a") + I1 + "y[i + 5] += a * x[i]\n",
    ),
    "a subscript beyond the end": ("fuse", FUSE + I1 + "y[i] += a * x[i + 1]\n"),
    "a parameter as the answer": ("interchange", SUMS + J1 + "s[j] = n\n"),
    "the kernel to be improved": (
        "interchange",
        SUMS + "    for j in range(n), i in range(n):\n        s[j] += A[i, j]\n",
    ),
    "two kernels": ("fuse", FUSE + I1 + "y[i] += a * x[i]\n\n" + SUMS + RIGHT_SUMS),
}


@pytest.mark.spread(15)
@pytest.mark.parametrize("how", CHEATS)
def test_no_point_for_nothing(how: str) -> None:
    exercise, text = CHEATS[how]
    found = judged(exercise, text)
    assert not found.correct and found.score == 0, found.message
    assert "failed" not in found.message and "Traceback" not in found.message


HONEST = {
    "as the model": ("interchange", SUMS + RIGHT_SUMS),
    "written out": ("interchange", SUMS + IJ + "s[j] = s[j] + A[i, j]\n"),
    "the other way round": ("interchange", SUMS + IJ + "s[j] = A[i, j] + s[j]\n"),
    "from the last row": ("interchange", SUMS + IJ + "s[j] += A[n - 1 - i, j]\n"),
    "partial sums of one's own": (
        "interchange",
        SUMS + "    temp t: f64[n]\n" + J1 + "t[j] = 0\n" + IJ + "t[j] += A[i, j]\n" + J1 + "s[j] += t[j]\n",
    ),
    "blocks that fit the given size": (
        "interchange",
        SUMS + "    for jj in range(0, n, 8), i in range(n), j in range(jj, jj + 8):\n        s[j] += A[i, j]\n",
    ),
    "a parameter of one's own": (
        "interchange",
        SUMS.replace("(n)", "(n, w = 8)") + "    tile j by w\n" + RIGHT_SUMS,
    ),
    "a constant of one's own": (
        "interchange",
        SUMS.replace("(n)", "(n, const w = 8)") + "    tile j by w\n" + RIGHT_SUMS,
    ),
    "an order": (
        "interchange",
        SUMS + "    order i, j\n    for j in range(n), i in range(n):\n        s[j] += A[i, j]\n",
    ),
    "another name and comments": (
        "fuse",
        "# mine\n" + FUSE.replace("scaled_sum", "mine") + I1 + "y[i] += x[i] * a  # one\n",
    ),
    "a let": ("fuse", FUSE + I1 + "let p = a * x[i]\n        y[i] = p + y[i]\n"),
    "lines that end as on Windows": ("fuse", (FUSE + I1 + "y[i] += a * x[i]\n").replace("\n", "\r\n")),
    "tabs": ("fuse", (FUSE + I1 + "y[i] += a * x[i]\n").replace("    ", "\t")),
    "a convention that is stated": (
        "fuse",
        FUSE.replace("\n    in a", "\n    traffic load_store\n    in a") + I1 + "y[i] += a * x[i]\n",
    ),
    "a maximum written out": (
        "write-maxplus",
        MAXPLUS + "    for i in range(n), k in range(n), j in range(n):\n"
        "        C[i, j] = max(C[i, j], A[i, k] + B[k, j])\n",
    ),
    "tiles by hand": (
        "write-blocked",
        BLOCKED.replace("(n)", "(n, b)")
        + "    for ii in range(0, n, b), jj in range(0, n, b), kk in range(0, n, b):\n"
        + "        for i in range(ii, ii + b), j in range(jj, jj + b), k in range(kk, kk + b):\n"
        + "            C[i, j] += A[i, k] * B[k, j]\n",
    ),
    "tiles of a transpose by hand": (
        "write-transpose",
        TRANSPOSE + "    for ii in range(0, n, 8), jj in range(0, n, 8):\n"
        "        for i in range(ii, ii + 8), j in range(jj, jj + 8):\n            B[j, i] = A[i, j]\n",
    ),
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("how", HONEST)
def test_honest_kernels_get_their_points(how: str) -> None:
    exercise, text = HONEST[how]
    found = judged(exercise, text)
    assert found.correct, found.message


def test_constants_are_right_for_one_seed_at_most() -> None:
    """Sums read off one draw of the data do not pass another; nobody knows beforehand which is drawn."""
    from roofdsl.classroom.kernel_equality import expected
    from roofdsl.classroom.query import kernel_of

    exercise = EXERCISES["fuse"]
    values = {name: choices[0] for name, choices in exercise.vary.items()}
    assert StudentVersion(exercise, values).seed != StudentVersion(exercise, values).seed
    first = StudentVersion(exercise, values, "", 1)
    reference = kernel_of(first.kernels["two"], {"n": 8})
    draws = [expected(reference, (("n", 8),), seed, uneven=False)[1].values["y"] for seed in (1, 2)]
    assert not (draws[0] == draws[1]).any()


OWN = '''
title = "Factor it"
unit = "intensity"
[kernels]
plain = """
kernel k(n):
    in a: f64, x, z: f64[n]
    inout y: f64[n]
    for i in range(n // 2):
        y[i] += a * x[i] + a * z[i]
"""
model = """
kernel k(n):
    in a: f64, x, z: f64[n]
    inout y: f64[n]
    for i in range(n // 2):
        y[i] += a * (x[i] + z[i])
"""
[[part]]
id = "kernel"
kind = "kernel"
ask = "Fewer operations?"
reference = "plain"
solution_kernel = "model"
at = { n = 64 }
require = [{ when = "W <= 96", why = "It does as many as before." }]
'''


def test_what_the_reference_leaves_alone_stays(tmp_path: Path) -> None:
    """Elements that the reference does not write keep their values; W is the exercise's own where it speaks of it."""
    path = tmp_path / "factor.toml"
    path.write_text(OWN)
    exercise = load(path)
    version = StudentVersion(exercise, {}, "", 3)
    model = version.kernels["model"]
    assert judged(exercise, model).correct
    assert "as many as before" in judged(exercise, version.kernels["plain"]).message
    scribbled = model + "    for i in range(n // 2, n):\n        y[i] = 0\n"
    assert "It changes y[32]" in judged(exercise, scribbled).message
    kept = model + "    for i in range(n // 2, n):\n        y[i] = y[i]\n"
    assert judged(exercise, kept).correct


def test_what_may_differ_follows_from_the_reference_alone() -> None:
    """The student's rounding widens nothing, and a reference that decides nothing is an error of the exercise."""
    from roofdsl.classroom.kernel_equality import expected
    from roofdsl.classroom.query import kernel_of
    from roofdsl.lang.diagnostics import CommandError

    text = "kernel k(n):\n    in x: f64[n]\n    out y: f64[n]\n" + I1 + "y[i] = x[i] + 1e300 - 1e300\n"
    with pytest.raises(CommandError) as error:
        expected(kernel_of(text, {"n": 8}), (("n", 8),), 1, uneven=False)
    assert "nothing can be compared" in error.value.message
