/* What students write: several targets in one statement, neighbors on a ring, rows as long as a sum, swapped arrays. */
#include <assert.h>
#include <stddef.h>

/* ---- `a = b = v` ---- */

void chain_of_zeros(int n, double (*f)[3]) {
    for (int i = 0; i < n; i++) { f[i][0] = f[i][1] = f[i][2] = 0; f[i][1] += i; }
}
void chain_of_scalars(int n, const double *x, double *y) {
    double s, t;
    for (int i = 0; i < n; i++) { s = t = x[i] * 2; s += 1; y[i] = s * t; }
}
void chain_of_sums(int n, const double *x, double *y) {
    double s, t;
    s = t = 0.0;
    for (int i = 0; i < n; i++) { s += x[i]; t -= s; }
    y[0] = y[1] = s * t;
}
void chain_of_elements(int n, const double *x, double *a, double *b) {
    for (int i = 0; i < n; i++) a[i] = b[n - 1 - i] = x[i] + 1;
}
void chain_through_float(int n, const double *x, float *b, double *a, double *c) {
    float t;
    for (int i = 0; i < n; i++) { a[i] = b[i] = x[i] * 0.1; c[i] = t = x[i] * 0.3; }
}
void chain_to_float(int n, const float *x, double *a, float *b) {
    for (int i = 0; i < n; i++) b[i] = a[i] = x[i] * x[i];
}
void chain_of_integers(int n, double *a, int *k) {
    int p, q;
    for (int i = 0; i < n; i++) { p = q = 2 * i; a[i] = p; p = k[i] = q + 1; k[i] += p; a[i] = k[i] = i; }
}
void chain_of_counters(int n, double *a) {
    int i, j;
    i = j = 0;
    while (i < n) { a[i] = j; j += 3; i++; }
}
void chain_of_sets(int n, double *a) {
    for (int i = 0; i < n; i++) {
        int lo, hi;
        lo = hi = i;
        if (i > 1) lo = hi = i - 1;
        a[lo] += 1; a[hi] += 2;
    }
}
void chain_changes_after_use(int n, int *a, double *b) { for (int i = 0; i < n; i++) { int k = i; k = a[k] = 1; b[0] += k; } }
void chain_on_sizes(int n, double *a, double *b) {
    for (int i = 0; i < n; i++) a[i] = b[i] = i == 0 ? 1.5 : a[i] * 2;
}
struct pair { double x, y; };
void chain_of_members(int n, struct pair *p, double *b) {
    struct pair s;
    for (int i = 0; i < n; i++) { s.x = s.y = b[i]; p[i].x = p[i].y = s.x + 1; b[i] = p[i].x = s.y; }
}
void chain_with_steps(int n, double *a, double *b) { while (n-- > 0) *a++ = *b++ = 2; }

/* ---- neighbors on a ring ---- */

void ring(int n, const double *a, double *b) {
    for (int i = 0; i < n; i++) b[i] = a[(i + 1) % n] + a[(i + n - 1) % n] - 2.0 * a[i];
}
void ring_before(int n, const double *a, double *b) { for (int i = 0; i < n; i++) b[i] = a[(i - 1 + n) % n]; }
void ring_in_variables(int n, const double *a, double *b) {
    for (int i = 0; i < n; i++) {
        int next = (i + 1) % n, last;
        last = (i - 1 + n) % n;
        b[i] = a[next] - a[last] + next;
    }
}
void ring_of_choices(int n, const double *a, double *b) {
    for (int i = 0; i < n; i++) { int last = i == 0 ? n - 1 : i - 1; b[last] += a[i]; }
}
void ring_unsigned(size_t n, const double *a, double *b) {
    for (size_t i = 0; i < n; i++) { size_t last = (i + n - 1) % n; b[i] = a[last] + last; }
}
void ring_twice(int n, const double *a, double *b) { for (int i = 0; i < 2 * n; i++) b[i] += a[i % n] * (i / n); }
void ring_of_turns(int n, const double *a, double *b) {
    for (int i = n; i < 2 * n; i++) b[i - n] = a[(i + n) % n] + a[(i + 2 * n - 1) % n];
}
void ring_down(int n, double *a, const double *b) { for (int i = n - 1; i >= 0; i--) a[(i + 1) % n] += b[i]; }
void torus(int n, int m, const double *a, double *b) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            b[i * m + j] = a[(i + 1) % n * m + j] + a[(i - 1 + n) % n * m + j] + a[i * m + (j + 1) % m]
                + a[i * m + (j - 1 + m) % m] - 4 * a[i * m + j];
}
void torus_of_rows(int n, int m, const double a[n][m], double b[n][m]) {
    for (int i = 0; i < n; i++) {
        int up = (i + n - 1) % n;
        for (int j = 0; j < m; j++) { if (j == 2) continue; b[i][j] = a[up][j] + a[i][(j + 1) % m]; }
    }
}
void torus_of_pointers(int n, int m, const double *a, double *b) {
    for (int i = 0; i < n; i++) {
        const double *below = a + (i + 1) % n * m;
        for (int j = 0; j < m; j++) b[i * m + j] = below[j];
    }
}
static double at(int n, const double *a, int i) { return a[(i + n) % n]; }
void ring_by_function(int n, const double *a, double *b) { for (int i = 0; i < n; i++) b[i] = at(n, a, i - 1) + at(n, a, i + 1); }
void ring_by_ifs(int n, const double *a, double *b) {
    for (int i = 0; i < n; i++) {
        int last = i - 1, next = i + 1;
        if (last < 0) last += n;
        if (next == n) next = 0;
        b[i] = a[last] + a[next];
    }
}
void ring_of_two_cases(int n, const double *a, double *b) {
    for (int i = 0; i < n; i++) {
        int last, far;
        if (i > 0) { last = i - 1; far = 0; } else { last = n - 1; far = 1; }
        b[i] = a[last] * far;
        far = 2 * last;
        b[i] += far;
    }
}
void ring_with_state(int n, const double *a, double *b) {
    int k = 0;
    for (int i = 0; i < n; i++) { if (i > 0) k = i - 1; else k = n - 1; b[k] += a[i]; }
    for (int i = 0; i < n; i++) { k = (i + 1) % n; b[k] -= a[i]; }
}
void ring_in_a_bound(int n, double *a) {
    for (int i = 0; i < n; i++) { int k = (i + 1) % n; for (int j = k; j < n; j++) a[j] += i; }
}
void ring_chosen_on_data(int n, const double *a, double *b) {
    for (int i = 0; i < n; i++) { int k = (i + 1) % n; if (a[i] > 0) b[k] = 1; else b[k] = a[k]; }
}

/* ---- arrays that change their roles ---- */

void heat(int n, int steps, double *a, double *b) {
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++) b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1];
        double *tmp = a;
        a = b;
        b = tmp;
    }
}
void heat_and_result(int n, int steps, double *a, double *b, double *c) {
    double *from = a, *to = b, *tmp;
    for (int t = steps; t > 0; t--) {
        for (int i = 1; i < n - 1; i++) to[i] = from[i - 1] + from[i + 1];
        tmp = from; from = to; to = tmp;
    }
    for (int i = 0; i < n; i++) c[i] = from[i] + to[0];
}
void ten_steps(int n, double *a, double *b) {
    for (int t = 1; t <= 5; t++) {
        for (int i = 1; i < n; i++) b[i] = a[i - 1];
        double *tmp = a; a = b; b = tmp;
    }
    a[0] = 1;
}
void wave(int n, int steps, double *u, double *v, double *w) {
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++) w[i] = 2 * v[i] - u[i] + 0.1 * (v[i - 1] - 2 * v[i] + v[i + 1]);
        double *old = u; u = v; v = w; w = old;
    }
}
void swapped_rows(int n, int steps, double a[n][n], double b[n][n]) {
    double (*p)[n] = a, (*q)[n] = b;
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) q[i][j] = p[i - 1][j];
        double (*r)[n] = p; p = q; q = r;
    }
    if (steps % 2) for (int i = 0; i < n; i++) a[0][i] = b[0][i];
}
void swapped_flat(int n, int m, int steps, double *a, double *b) {
    for (int t = 0; t < steps; t += 2) {
        for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) b[i * m + j] = a[i * m + j] + a[(i - 1) * m + j];
        double *tmp = a; a = b; b = tmp;
    }
}

/* ---- rows as long as a sum ---- */

void convolution(int h, int w, int k, const float *in, const float *f, float *out) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float s = 0.0f;
            for (int dy = 0; dy < k; dy++)
                for (int dx = 0; dx < k; dx++)
                    s += in[(y + dy) * (w + k - 1) + x + dx] * f[dy * k + dx];
            out[y * w + x] = s;
        }
}
void turned_convolution(int w, int k, const double *in, const double *f, double *out) {
    for (int y = 0; y < w; y++)
        for (int x = 0; x < w; x++)
            for (int dy = 0; dy < k; dy++)
                for (int dx = 0; dx < k; dx++)
                    out[y * w + x] += in[(y + k - 1 - dy) * (k + w - 1) + x + k - 1 - dx] * f[dy * k + dx];
}
void halo(int n, const double *u, double *v) {
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++)
            v[i * (n + 2) + j] = u[(i - 1) * (n + 2) + j] + u[(i + 1) * (n + 2) + j] + u[i * (n + 2) + j - 1]
                + u[i * (n + 2) + j + 1];
}
void halo_in_space(int n, const double *u, double *v) {
    for (int i = 1; i <= n; i++) for (int j = 1; j <= n; j++) for (int k = 1; k <= n; k++)
        v[(i * (n + 2) + j) * (n + 2) + k] = u[((i - 1) * (n + 2) + j) * (n + 2) + k + 1];
}
void halo_of_two_sizes(int n, int m, double *u) {
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { u[i * (2 * m + 1) + 2 * j] += u[i * (2 * m + 1) + 2 * j + 1]; }
}
void halo_swapped(int n, int steps, double *u, double *v) {
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i <= n; i++)
            for (int j = 1; j <= n; j++) {
                int at = i * (n + 2) + j;
                v[at] = u[at - 1] + u[at + 1] - u[at - (n + 2)];
            }
        double *w = u; u = v; v = w;
    }
}
void diagonal(int n, double *a) { for (int i = 0; i < n; i++) a[i * n + i] += a[i * (n + 1)]; }

/* ---- all of it together ---- */

void ring_swapped(int n, int steps, double *a, double *b, double *r) {
    for (int t = 0; t < steps; t++) {
        for (int i = 0; i < n; i++) { int l = (i + n - 1) % n, k = (i + 1) % n; if (i == t) continue; b[i] = 0.5 * (a[l] + a[k]); }
        double *s = a; a = b; b = s;
    }
    for (int i = 0; i < n; i++) r[i] = a[i];
}
void unsigned_wrap(unsigned n, double *a, const double *b) {
    unsigned k;
    for (unsigned i = 0; i < n; i++) { k = i + 1; if (k >= n) k -= n; a[k] += b[i] * k; }
}
void shifted_ring(int n, int s, double *a, const double *b) {
    assert(s < n);
    for (int i = 0; i < n; i++) { int from = (i - s + n) % n; a[i] = b[from] + b[(i + s) % n]; }
}
void ring_in_a_halo(int n, int m, double *a) {
    for (int i = n; i > 0; i--)
        for (int j = m - 1; j >= 0; j--) {
            int w = (j + m - 1) % m, e = j == m - 1 ? 0 : j + 1;
            a[i * (m + 1) + w] += a[(i - 1) * (m + 1) + e] * e;
        }
}
void laps(int n, double *a, double *b) {
    for (int i = 0; i < 2 * n; i++) { int h = i / n, r = i % n; if (h == 1) b[r] += a[r]; else a[r] = h + r; }
}
void neighbors_of_ends(int n, double *a, double *b) {
    for (int i = 0; i < n; i++) {
        int l, r;
        l = r = i;
        if (i > 0) l = i - 1;
        if (i < n - 1) r = i + 1;
        b[i] = a[l] + a[r];
        l = r;
        for (int j = l; j < n; j++) a[j] += 1;
    }
}
void torus_swapped(int n, int steps, double a[n][n], double b[n][n]) {
    double (*p)[n] = a, (*q)[n] = b;
    for (int t = 0; t < steps; t += 2) {
        for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) q[i][j] = p[(i + 1) % n][j] + p[i][(j + n - 1) % n];
        double (*r)[n] = p; p = q; q = r;
    }
    p[0][0] = q[n - 1][0] = 3;
}
void swapped_twice(int n, int steps, double *a, double *b) {
    for (int t = 0; t < steps; t++) {
        double *w = a; a = b; b = w;
        for (int i = 0; i < n; i++) { if (i == t % 2) continue; a[i] = b[(i + 1) % n]; }
    }
    for (int t = 0; t < steps; t++) { for (int i = 0; i < n; i++) b[i] = a[i] + 1; double *w = a; a = b; b = w; }
}
void triangle_of_choices(int n, int m, double *a) {
    for (int i = 0; i < n; i++) { int last = m; if (i + 1 < m) last = i + 1; for (int j = 0; j < last; j++) a[i * m + j] = 1; }
}
void neighbor_of_neighbor(int n, double *a, double *b) {
    for (int i = 0; i < n; i++) { int p = (i + 1) % n; double w = a[p]; int q = p == 0 ? n - 1 : p - 1; b[q] = w + q; }
}
