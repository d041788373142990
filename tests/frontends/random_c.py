"""Random C functions of affine loops, in the ways that people write them."""

from __future__ import annotations

from random import Random

SIGNATURE = [
    ("n", "int"), ("m", "int"), ("a", "double*"), ("b", "double*"), ("P", "double*"), ("F", "double*"),
    ("g", "float*"), ("h", "float*"), ("k", "int*"), ("c", "char*"), ("q", "double*"),
]  # fmt: skip
HEAD = """
#include <math.h>
#define AT(p, q) F[(p) * m + (q)]
static double twice(double x) {{ double y = x + x; return y; }}
#define MIN(p, q) ((p) < (q) ? (p) : (q))
#define MAX(p, q) ((p) > (q) ? (p) : (q))
static float halved(float x) {{ return 0.5f * x; }}
static int third(int p) {{ return (p + 9) / 3; }}
static double whole(int p) {{ return p; }}
struct quad {{ double x, y[2], z; }};
static double first_of(struct quad u) {{ return u.x + u.z * u.x; }}
static void add(int k, double *p, const double *q) {{ for (int u = 0; u < k; u++) p[u] += q[u]; }}
void {name}(int n, int m, double a[2 * n + 64], double b[2 * n + 64], double P[n + 32][n + 32], double *F,
    float g[2 * n + 64], float h[2 * n + 64], int k[2 * n + 64], const signed char c[2 * n + 64],
    struct quad q[2 * n + 64]) {{
    double s = 0.5, t = 0.25;
    float e = 1.5f;
    int i, j;
"""


class Writer:
    """Writes one function. Counters lie from -4 to n + 8, so that the arrays' sizes hold every subscript."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.counters: list[str] = []
        self.columns: list[tuple[str, str]] = []  # pairs of counters within 0..n-1 and 0..m-1

    def function(self, name: str) -> str:
        for _ in range(self.random.randint(1, 3)):
            self.statement(1)
        self.put(1, "a[0] += s;")
        self.put(1, "b[1] = t;")
        self.put(1, "g[2] = e;")
        return HEAD.format(name=name) + "\n".join(self.lines) + "\n}\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ---- integers ----

    def index(self) -> str:
        """A subscript between 0 and 2 n + 60, or n + 30 for one counter."""
        r = self.random
        if not self.counters:
            return str(r.randint(0, 20))
        i = r.choice(self.counters)
        return r.choice([f"{i} + 6", f"6 + {i}", f"{i} + {r.randint(4, 9)}", f"n + 12 - {i}", f"({i} + 8)"])

    def wide(self) -> str:
        r = self.random
        if len(self.counters) < 2 or r.random() < 0.6:
            return self.index()
        i, j = r.sample(self.counters, 2)
        return r.choice(
            [
                f"third({i})",
                f"MIN({i}, {j}) + 7" if r.random() < 0.3 else f"{i} + 7",
                f"{i} + {j} + 10",
                f"{i} - {j} + n + 20",
                f"2 * {i} + 10",
                f"({i} + 6) / 2",
                f"({j} + 4) % 5",
            ]
        )

    def condition(self) -> str:
        r = self.random
        i = r.choice(self.counters)
        other = r.choice(["2", "n - 1", "m", *self.counters])
        one = f"{i} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {other}"
        return one if r.random() < 0.7 else f"{one} {r.choice(['&&', '||'])} !({i} > {r.randint(0, 5)})"

    # ---- values ----

    def element(self) -> str:
        r = self.random
        kind = r.random()
        if kind < 0.25 and self.columns:
            p, q = r.choice(self.columns)
            return r.choice([f"F[{p} * m + {q}]", f"AT({p}, {q})", f"*(F + {q} + m * {p})"])
        if kind < 0.5:
            return f"P[{self.index()}][{self.index()}]"
        if kind < 0.65:
            return f"q[{self.wide()}].{r.choice(['x', 'y[0]', 'y[1]', 'z'])}"
        return f"{r.choice('ab')}[{self.wide()}]"

    def leaf(self) -> str:
        r = self.random
        choices = [self.element(), self.element(), r.choice("st"), r.choice(["0.5", "1.25", "3", "-2", "1e-1"])]
        if self.counters:
            i = r.choice(self.counters)
            choices.append(f"(double) ({i} + 1)")
            choices.append(f"whole({i} + 5) / 2")
            choices.append(f"({self.condition()} ? {r.randint(1, 5)} : {r.choice(['2.5', '0.75'])}) / 2")
        if r.random() < 0.15:
            choices.append(r.choice([f"g[{self.index()}]", f"k[{self.index()}]", f"c[{self.index()}]"]))
        if r.random() < 0.1:
            choices.append(f"first_of(q[{self.index()}])")
        return r.choice(choices)

    def single(self, depth: int = 2) -> str:
        """A value in float."""
        r = self.random
        leaves = [f"g[{self.index()}]", f"h[{self.wide()}]", "e", f"h[{self.index()}]"]
        if depth == 0 or r.random() < 0.3:
            return r.choice(leaves)
        a, b = self.single(depth - 1), self.single(depth - 1)
        kind = r.random()
        if kind < 0.5:
            return f"({a} {r.choice('+-*')} {b})"
        if kind < 0.7:
            return f"{r.choice(['0.5f', '2', '1.25f', '-3'])} * {a}"
        if kind < 0.8:
            return f"{r.choice(['fabsf', 'halved', '-'])}({a})"
        if kind < 0.9:
            return f"{r.choice(['fmaxf', 'fminf'])}({a}, {b})"
        if self.counters and r.random() < 0.5:
            return f"({self.condition()} ? {a} : {b})"
        return f"({r.choice(leaves)} < {r.choice(leaves)} ? {a} : {b})"

    def integer(self, depth: int = 2) -> str:
        """A value in int."""
        r = self.random
        leaves = [f"k[{self.index()}]", f"c[{self.index()}]", str(r.randint(1, 9))]
        leaves += self.counters
        if depth == 0 or r.random() < 0.3:
            return r.choice(leaves)
        a, b = self.integer(depth - 1), r.choice([str(r.randint(1, 3)), *leaves])
        if r.random() < 0.7:
            return f"({a} {r.choice('+-')} {b})"
        return r.choice([f"{a} * 2", f"-({a})", f"(c[{self.index()}] == {r.randint(0, 3)} ? {a} : {b})"])

    def bounded(self, place: str) -> str:
        """An assignment of an integer that stays small: the older value does not enter a sum with itself."""
        return f"{place} = {self.integer()};"

    def value(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.25:
            return self.leaf()
        a, b = self.value(depth - 1), self.value(depth - 1)
        kind = r.random()
        if kind < 0.6:
            return f"({a} {r.choice('+-*')} {b})" if r.random() < 0.5 else f"{self.leaf()} {r.choice('+-*')} ({b})"
        if kind < 0.7:
            return f"{r.choice(['fabs', '-', 'twice'])}({a})"
        if kind < 0.8:
            return f"{r.choice(['fmax', 'fmin'])}({a}, {b})"
        if kind < 0.9 and self.counters:
            return f"({self.condition()} ? {a} : {b})"
        return f"({self.leaf()} {r.choice(['<', '>='])} {self.leaf()} ? {a} : {b})"

    # ---- statements ----

    def statement(self, depth: int) -> None:
        r = self.random
        kind = r.random()
        if len(self.counters) < 3 and (kind < 0.5 or not self.counters):
            self.loop(depth)
        elif kind < 0.6:
            self.put(depth, f"if ({self.condition()}) {{")
            self.statement(depth + 1)
            if r.random() < 0.5:
                self.put(depth, "} else {")
                self.statement(depth + 1)
            self.put(depth, "}")
        elif kind < 0.68:
            self.put(depth, f"if ({self.leaf()} > {self.leaf()}) {{ s = {self.value(1)}; t = t - s; }}")
        elif kind < 0.73:
            place = self.element()
            test = f"{self.leaf()} < {self.leaf()}"
            self.put(depth, f"if ({test}) {place} = {self.value(1)}; else {place} = {self.value(1)};")
        elif kind < 0.8:
            self.put(depth, f"{r.choice('st')} {r.choice(['=', '+='])} {self.value(1)} * 0.5;")
        elif kind < 0.85:
            self.names += 1
            self.put(depth, f"{{ double x{self.names} = {self.value(1)}; {self.element()} = x{self.names} * 0.5; }}")
        elif kind < 0.86:
            self.put(depth, f"q[{self.index()}] = q[{self.index()}];")
        elif kind < 0.88:
            self.put(depth, f"add({r.randint(2, 4)}, a + {self.index()}, &b[{self.index()}]);")
        elif kind < 0.92:
            place = r.choice([f"g[{self.index()}]", f"h[{self.wide()}]", "e"])
            self.put(depth, f"{place} {r.choice(['=', '+=', '-=', '*='])} {self.single()};")
        elif kind < 0.94:
            self.put(depth, self.bounded(f"k[{self.index()}]"))
        else:
            self.put(depth, f"{self.element()} {r.choice(['=', '=', '+=', '-=', '*='])} {self.value()};")

    def loop(self, depth: int) -> None:
        r = self.random
        self.names += 1
        i = f"i{self.names}"
        if r.random() < 0.3:
            self.column_loops(depth)
            return
        if r.random() < 0.25:
            self.induction(depth, i)
            return
        if r.random() < 0.15:
            self.other_loop(depth, i)
            return
        low = r.choice(["0", "1", "-3", "2", *self.counters])
        high = r.choice(
            ["n", "n - 1", "n + 4", "7", *[f"{c} + 1" for c in self.counters], "(n < 9 ? n : 9)", "MIN(n, m)"]
        )
        step = r.choice([1, 1, 1, 2, 3])
        op = r.choice(["<", "<="])
        kind = r.choice(["int", "int", "long"])
        if "?" not in high and "MIN" not in high and r.random() < 0.1:
            low = f"MAX({low}, {r.randint(0, 2)})"
        forms = [f"for ({kind} {i} = {low}; {i} {op} {high}; {i}{'++' if step == 1 else f' += {step}'})",
                 f"for ({kind} {i} = {low}; {high} {'>' if op == '<' else '>='} {i}; {i} = {i} + {step})"]  # fmt: skip
        if "?" not in high and "M" not in high + low:
            forms.append(f"for (int {i} = {high}; {i} {'>' if op == '<' else '>='} {low}; {i} -= {step})")
        self.nested(depth, r.choice(forms), [i])

    def other_loop(self, depth: int, i: str) -> None:
        """`while` and `do`."""
        low, high = self.random.choice(["0", "2", "n - 3"]), self.random.choice(["n", "n + 4", "7"])
        kind = self.random.randint(0, 3)
        self.put(depth, f"{{ int {i} = {[high, low, '0', high][kind]};")
        if kind == 2:
            self.nested(depth + 1, "do", [i])
            self.put(depth + 1, f"while (++{i} < {high});")
        else:
            header = [f"while ({i}-- > {low})", f"while ({i}++ < {high})", "", f"while (--{i} >= {low})"][kind]
            self.nested(depth + 1, header, [i])
        self.put(depth, "}")

    def column_loops(self, depth: int) -> None:
        p, q = f"p{self.names}", f"q{self.names}"
        self.put(depth, f"for (int {p} = 0; {p} < n; ++{p})")
        self.columns.append((p, q))
        self.nested(depth + 1, f"for (int {q} = 0; {q} < m; ++{q})", [p])
        self.columns.pop()

    def induction(self, depth: int, i: str) -> None:
        """A counter of its own, `k`, that goes along."""
        r = self.random
        k = f"k{self.names}"
        self.put(depth, f"int {k} = {r.randint(3, 8)};")
        self.put(depth, f"for (int {i} = 0; {i} < n; {i}++) {{")
        self.put(depth + 1, f"a[{k}] = {self.value(1)} + b[{k} + 1];")
        self.put(depth + 1, r.choice([f"{k}++;", f"{k} += 1;", f"{k} = {k} + 1;"]))
        if r.random() < 0.5:
            self.put(depth + 1, f"b[{k}] *= 0.5;")
        self.put(depth, "}")

    def nested(self, depth: int, header: str, counters: list[str]) -> None:
        self.put(depth, header + " {")
        self.counters += counters
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth + 1)
        del self.counters[-len(counters) :]
        self.put(depth, "}")
