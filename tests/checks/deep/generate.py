"""Seeded random kernels that may break the rules of the deep checks: as text."""

from __future__ import annotations

from random import Random

_OUTER = ["range(n)"] * 3 + ["range(1, n)", "range(n - 1)", "range(0, n, 2)", "range(m)"]


def _inner(outer: str) -> list[str]:
    v = outer
    return [f"range({v} + 1)", f"range({v}, n)", f"range({v})", f"range(max(0, {v} - 1), min(n, {v} + 2))"]


def _clauses(r: Random, names: str, blocked: bool) -> list[str]:
    clauses = []
    for outer, v in zip(["", *names], names, strict=False):
        forms = _OUTER + (_inner(outer) * 2 if outer else [])
        if blocked and r.random() < 0.5:
            stop = r.choice([f"{v}{v} + b", f"min(n, {v}{v} + b)"])
            clauses += [f"{v}{v} in range(0, n, b)", f"{v} in range({v}{v}, {stop})"]
        else:
            clauses.append(f"{v} in {r.choice(forms)}")
    return clauses


def directive_kernel(seed: int) -> str:
    """A nest with `tile` or `order`, one or two statements on shared arrays and a scalar; loops may be parallel."""
    r = Random(seed)
    names = r.choice(("ij", "ij", "ijk"))
    symbolic = r.random() < 0.4
    divides = symbolic and r.random() < 0.5

    def place() -> str:
        def subscript() -> str:
            v, c = r.choice(names), r.randint(0, 2)
            forms = [f"{v} + {c}"] * 6 + [f"2*{v} + {c}", f"{v} // 2", f"n + m + 2 - {v}", f"{v} + {r.choice(names)}"]
            return r.choice(forms)

        kind = r.random()
        if kind < 0.7:
            return f"A[{r.choice(names)} + {r.randint(0, 2)}, {subscript()}]"
        return f"B[{subscript()}]" if kind < 0.9 else "s"

    def statement() -> str:
        target, op = place(), r.choice(("=", "=", "+=", "-=", "min="))
        return f"{target} {op} {place()} + {place()}" if r.random() < 0.7 else f"{target} {op} 0.5"

    statements = [statement() for _ in range(r.choice((1, 1, 2)))]
    if r.random() < 0.2:
        statements.append(f"if ({names[0]} + {names[1]}) % 2 == 0:\n            {statement()}")
    directive = ""
    if r.random() < 0.3:
        directive = "order " + ", ".join(r.sample(names, len(names)))
    else:
        chosen = r.sample(names, r.randint(1, len(names)))
        sizes = "b" if symbolic else ", ".join(str(r.choice((2, 3))) for _ in chosen)
        directive = f"tile {', '.join(chosen)} by {sizes}"
    clauses = [c.replace("range(0, n, 2)", "range(n)") for c in _clauses(r, names, False)]
    loops = "".join(f"{'parallel ' if r.random() < 0.2 else ''}for {c}:\n@" for c in clauses)
    lines = [f"kernel k{seed}(n, m{', b' if symbolic else ''}):"]
    lines += ["    assume n % b == 0"] if divides else []
    lines += ["    inout A: f64[2*n + 2*m + 4, 2*n + 2*m + 8], B: f64[2*n + 2*m + 8], s: f64", f"    {directive}"]
    depth = 1
    for loop in loops.split("@")[:-1]:
        lines.append("    " * depth + loop.rstrip("\n"))
        depth += 1
    for s in statements:
        lines += ["    " * depth + s.replace("\n            ", "\n" + "    " * (depth + 1))]
    return "\n".join(lines) + "\n"


def bounds_kernel(seed: int) -> str:
    """Loops, also blocked and guarded, over arrays that may be too small."""
    r = Random(seed)
    names = r.choice(("i", "ij", "ij", "ijk"))
    blocked = r.random() < 0.3
    assume = ["    assume n % b == 0"] if blocked and r.random() < 0.6 else []
    assume += ["    assume n >= m"] if r.random() < 0.2 else []
    assume += ["    assume n % 2 == 0"] if r.random() < 0.1 else []
    dims = [r.choice(["n", "n", "m", "n + m", "2*n", "n + 1", "max(n, m)", "min(n, m)", "n*m", "n // 2 + 1", "5"])]
    dims.append(r.choice(["n", "n", "m", "n + m", "2*n", "n + 2", "n // 2", "n*n"]))

    def subscript() -> str:
        v, w, c = r.choice(names), r.choice(names), r.choice((-1, 0, 0, 0, 1))
        shift = f" {'-' if c < 0 else '+'} {abs(c)}" if c else ""
        forms = [f"{v}{shift}"] * 5 + [f"{v} + {w}", f"2*{v}", f"{v} // 2", f"{v} % 3", f"n - 1 - {v}", f"{v} - {w}"]
        return r.choice(forms)

    if r.random() < 0.6:
        dims = [f"{d} + {r.choice(('1', 'n', 'm + n', '2*n + 2'))}" for d in dims]
    lines = [f"kernel k{seed}(n, m{', b' if blocked else ''}):", *assume]
    lines += [f"    inout A: f64[{', '.join(dims)}], C: f64[{dims[0]}]"]
    lines += [f"    for {', '.join(_clauses(r, names, blocked))}:"]
    depth = 2
    if r.random() < 0.4:
        v = r.choice(names)
        conditions = [f"{v} > 0", f"{v} < n - 1", f"{v} + {names[0]} < n", f"{v} % 2 == 0", f"{v} != 0 and {v} < m"]
        lines.append(f"        if {r.choice(conditions)}:")
        depth = 3
    lines.append("    " * depth + f"C[{subscript()}] += A[{subscript()}, {subscript()}] * A[{subscript()}, 0]")
    return "\n".join(lines) + "\n"


def intents_kernel(seed: int) -> str:
    """An `out`, a `temp` and a scalar, written and read in two nests, perhaps blocked and guarded."""
    r = Random(seed)
    blocked = r.random() < 0.4
    lines = [f"kernel k{seed}(n, m{', b' if blocked else ''}):"]
    lines += ["    assume n % b == 0"] if blocked and r.random() < 0.7 else []
    lines += ["    assume n >= m"] if r.random() < 0.3 else []
    lines += ["    out A: f64[2*n + 2*m + 4, n + m + 4]", "    temp t: f64[2*n + 2*m + 4], s: f64"]

    fills = {
        "s": "s = 0.0",
        "t": "for u in range(2*n): t[u] = 0.0",
        "A": "for u in range(n), v in range(n): A[u, v] = 1",
    }
    lines += [f"    {fill}" for fill in r.sample(list(fills.values()), r.randint(0, 3))]

    def place(names: str) -> str:
        v, w, c = r.choice(names), r.choice(names), r.choice((0, 0, 0, 1))
        forms = [f"A[{names[0]}, {names[-1]}]"] * 3 + [
            f"A[{v} + {c}, {w}]",
            f"t[{v} + {c}]",
            f"t[{v}]",
            f"t[2*{v}]",
            "s",
        ]
        return r.choice(forms)

    def nest(names: str) -> None:
        lines.append(f"    for {', '.join(_clauses(r, names, blocked))}:")
        for n in range(r.choice((1, 2))):
            guard = r.choice(["", "", f"if {names[0]} == 0: ", f"if {names[0]} > 0: ", f"if {names[-1]} == 0: "])
            op = r.choice(("=", "=", "=", "+="))
            value = place(names) if r.random() < 0.5 else "0.0"
            target = place(names)
            lines.append(f"        {'' if n == 0 else guard}{target} {op} {value}")

    for _ in range(r.choice((1, 2, 2))):
        nest(r.choice(("pq", "p", "ij", "ij")))
    lines += ["    A[0, 0] = 0.0", "    t[0] = 0.0", "    s = 0.0"]
    return "\n".join(lines) + "\n"
