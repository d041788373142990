/* Memory that is filled and copied, and walked through by pointers. */
#include <assert.h>
#include <string.h>
#include <stdlib.h>

void cleared(int n, double *y, const double *x) { memset(y, 0, n * sizeof(double)); for (int i = 0; i < n; i++) y[i] += x[i]; }
void both_shapes(int n, int m, double A[n][m], double *B) { memset(A, 0, sizeof(double) * n * m); memcpy(B, A, n * m * sizeof(*B)); }
void back_and_forth(int n, double *y, double *x) {
    for (int t = 0; t < 3; t++) {
        for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] + x[i + 1];
        memcpy(x, y, n * sizeof(double));
    }
}
void rows_cleared(int n, int m, double *C) { for (int i = 0; i < n; i++) memset(&C[i * m], 0, m * sizeof C[0]); }
void rows_copied(int n, int m, double *C, const double *D) { for (int i = 0; i < n; i++) memcpy(C + i * m, D + i * m, m * sizeof(double)); }
void floats(int n, float *a) { memset(a, 0, sizeof(float) * n); }
void minus_one(int n, int *a) { memset(a, -1, n * sizeof(int)); }
void bytes(int n, char *a, const char *b) { memcpy(a, b, n); }
void from_the_corner(int n, int m, double A[n][m], double B[n][m]) { memcpy(&A[0][0], &B[0][0], sizeof(double) * n * m); }
void fixed(double A[8][16], double B[8][16]) { memcpy(A, B, sizeof(double[8][16])); }
void row_by_row(int n, int m, double A[n][m], const double *B) { for (int i = 0; i < n; i++) memcpy(A[i], B, m * sizeof(double)); }
void inner_part(int n, double *a, const double *b) { memcpy(a + 1, b + 2, (size_t)n * sizeof(double)); }

/* ---- pointers as counters ---- */

typedef struct { double x, v; } pair;
void sum(int n, const double *a, double *s) { for (const double *p = a; p < a + n; p++) *s += *p; }
void two_pointers(int n, const double *a, double *b) { const double *p = a, *end = a + n; while (p != end) { *b = *p * 2; p++; b++; } }
void arguments_as_pointers(int n, const double *a, double *b) { const double *end = a + n; while (a < end) *b++ = *a++ + 1; }
void set_before(int n, double *a) { double *p, *end = a + n; for (p = a; p != end; ++p) *p *= 2; }
void downwards(int n, double *a) { for (double *p = a + n - 1; p >= a; p--) *p *= 2; }
void in_the_header(int n, double *a, double *b) { for (double *p = a, *q = b; p < a + n; p++, q++) *p = *q; }
void in_steps(int n, double *a) { for (double *p = a; p < &a[n]; p += 2) p[0] = p[1]; }
void members(int n, pair *b, double dt) { pair *end = b + n; for (pair *p = b; p != end; p++) p->x += dt * p->v; }
void inclusive(int n, double *a) { for (double *p = a; p <= a + n - 1; p++) *p = 1; }
void a_row(int n, int m, double A[n][m]) { for (double *p = A[0]; p < A[0] + m; p++) *p = 0; }
void each_row(int n, int m, double A[n][m]) { for (int i = 0; i < n; i++) for (double *p = A[i]; p < A[i] + m; p++) *p += i; }
void at_the_end(int n, double *a) { double *p = a; do { *p++ = 0; } while (p < a + n); }
void joined(int n, double *a, double *b) { const double *e = a + n; while (a < e) { double t = *a; *b = t * t; a++, b++; } }
void a_window(int n, const double *x, double *y) { for (const double *p = x + 1; p < x + n - 1; p++) *y++ = p[-1] + p[0] + p[1]; }
void interior(int n, double *restrict u, const double *restrict t) { assert(n >= 2); memcpy(u + 1, t + 1, (n - 2) * sizeof(double)); }
