#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <omp.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define IDX(i, j) ((i) * m + (j))
typedef float real;
static const int width = 3;
double table[8][16];
double level;

/* ---- loops ---- */

void up(int n, double *a) { for (int i = 2; i <= n; i += 3) a[i] = i; }
void down(int n, double *a) { int i; for (i = n - 1; i > 0; i -= 2) a[i] = a[i - 1] + i; }
void turned(int n, double *a) { for (int i = 0; n > i; i = 1 + i) a[i] += 1; }
void by_size(int n, int s, double *a) { for (int i = 0; i < n; i += s) a[i] *= 2; }
void after_a_loop(int n, double *a) { int i; for (i = 0; i < n; i++) a[i] = 0; a[i] = 1; }
void two_counters(int n, double *a) {
    for (int i = 0, j = n - 1; i < n / 2; i++, j--) { double t = a[i]; a[i] = a[j]; a[j] = t; }
}
void unsigned_remainders(size_t n, double *a, const double *b) {
    for (size_t i = 0; i < n; i++) a[i] = b[(i + 4) % 3] + b[i / 2] + b[(i % 5) / 2] + b[2 - i % 3];
}
void unsigned_counter(size_t n, double *a, const double *b) { for (size_t i = 1; i < n; i++) a[i] = b[i - 1]; }
void tiles(int n, double A[n][n], double B[n][n], double C[n][n]) {
    for (int ii = 0; ii < n; ii += 4)
        for (int jj = 0; jj < n; jj += 4)
            for (int i = ii; i < MIN(ii + 4, n); i++)
                for (int j = jj; j < n && j < jj + 4; j++)
                    for (int k = 0; k < n; k++)
                        C[i][j] += A[i][k] * B[k][j];
}

static int least(int a, int b) { return a < b ? a : b; }
void tiles_by_function(int n, double A[n][n], double B[n][n], double C[n][n]) {
    for (int ii = 0; ii < n; ii += 4)
        for (int jj = 0; jj < n; jj += 4)
            for (int i = ii; i < least(ii + 4, n); i++)
                for (int j = jj; j < fmin(n, jj + 4); j++)
                    for (int k = 0; k < n; k++)
                        C[i][j] += A[i][k] * B[k][j];
}
void rest_of_fours(int n, double *a) {
    int i;
    for (i = 0; i <= n - 4; i += 4) { a[i] += 1; a[i + 1] += 2; a[i + 2] += 3; a[i + 3] += 4; }
    for (; i < n; i++) a[i] += 5;
}
void rest_of_multiple(int n, double *a) {
    int i;
    for (i = 0; i < n - n % 4; i += 4) { a[i] += 1; a[i + 3] += 4; }
    while (i < n) { a[i] += 5; i++; }
}
void rest_first(int n, double *a) {
    int i;
    for (i = 0; i < n % 4; i++) a[i] += 5;
    for (; i < n; i += 4) { a[i] += 1; a[i + 3] += 4; }
}
void after_down(int n, double *a) { int i; for (i = n - 1; i > 1; i -= 3) a[i] += a[i - 2]; a[i + 1] += i; }
void shifted_test(int n, double *a) { for (int i = 0; i + 1 < n; i += 2) { double t = a[i]; a[i] = a[i + 1]; a[i + 1] = t; } }
void turned_test(int n, double *a) { for (int i = 0; n - i > 2; i++) a[i] += a[i + 2]; }
void counted_while(int n, int m, double *a) {
    int i = 0;
    while (i < n) { int j = m; while (j > 0) { a[i * m + j - 1] += i; j--; } i += 2; }
}
void continued(int n, double *a) {
    for (int i = 0; i < n; i++) { if (i % 3 == 1) continue; a[i] += 1; if (i < 2) { a[i] += 2; continue; } a[i] += 3; }
}
void left_early(int n, double *a) { if (!a || n <= 0) return; for (int i = 0; i < n; i++) a[i] += 1; }
void pairs(int m, double *a) { for (int i = 0; i < m; i += 2) { double t = a[i]; a[i] = a[i + 1]; a[i + 1] = t; } }
void blocks(int m, int s, double a[m]) { for (int i = 0; i < m; i += s) for (int j = i; j < i + s; j++) a[j] += i; }

/* ---- integers that go along ---- */

void stepping(int n, int m, double *a) { int k = 0; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[k++] += i; }
void stepping_before(int n, double *a) { int k = -1; for (int i = 0; i < n; i++) a[++k] += i; }
void walking(int n, double *a, const double *b) { double *p = a; for (int i = 0; i < n; i++) *p++ += *b++ * 2; }
void counting_data(int n, double *a) { double s = 0; for (int i = 0; i < n; i++) a[i] += s++; }

void packed(int n, double *a, const double *b) {
    int k = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) { a[k] = b[j]; k++; }
}
void wrapped(int n, double *a, const double *b) {
    int last = n - 1;
    for (int i = 0; i < n; i++) { a[i] = b[i] + b[last]; last = i; }
}
void forward(int n, double *a) { for (int i = 0; i < n; i++) { int j = 2 * i + 1; j -= i; a[j] = a[i] + j; } }
void same_on_both_ways(int n, double *a, const double *b) {
    int j = -1;
    for (int i = 0; i < n; i++) { if (b[i] > 0.) { j++; a[j] = b[i]; } else { j++; a[j] = -b[i]; } }
}
int counted(int n, const double *a) { int c = 0; for (int i = 0; i < n; i++) if (a[i] > 0.5) c++; return c; }
int argmax(int n, const double *a) {
    int best = 0; double top = a[0];
    for (int i = 1; i < n; i++) if (a[i] > top) { top = a[i]; best = i; }
    return best;
}

void counted_again(int n, double *a) {
    int k = 0;
    for (int i = 0; i < n; i++) if (a[i] > 0) k = i;
    a[0] = k;
    for (k = 0; k < n; k += 2) a[k] += 1;
    k = 7;
    a[1] = k;
}

/* ---- arrays and pointers ---- */

void linear(int n, int m, const double *restrict A, const double *restrict x, double *restrict y) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < n; ++i) {
        double sum = 0.0;
        for (int j = 0; j < m; ++j) sum += A[i * m + j] * x[j];
        y[i] += sum;
    }
}
void linear_stencil(int n, int m, const double *a, double *b) {
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < m - 1; j++)
            b[IDX(i, j)] = a[IDX(i - 1, j)] + a[IDX(i + 1, j)] + a[IDX(i, j - 1)] + a[IDX(i, j + 1)];
}
void last_column(int n, int m, double *a) { for (int i = 0; i < n; i++) a[(i + 1) * m - 1] = i; }
void linear_three(int n, double *a, const double *b) {
    for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)
        a[(i * n + j) * n + k] = b[((i - 1) * n + j) * n + k];
}
void triangle(int n, double *L, double *x) {
    for (int i = 0; i < n; i++) { for (int j = 0; j < i; j++) x[i] -= L[i * n + j] * x[j]; x[i] *= L[i * n + i]; }
}
void rows(int n, double (*A)[n], double *x) {
    for (int i = 0; i < n; i++) { double *row = A[i]; for (int j = 0; j < n; j++) x[i] += row[j]; }
}
void moving(int n, double *a, const double *b) { for (int i = 0; i < n; i++) { *a = *b + 1; a++; b++; } }
void own_memory(int n, double *a) {
    double *t = malloc(n * sizeof(double));
    for (int i = 0; i < n; i++) t[i] = a[i] * a[i];
    for (int i = 0; i < n; i++) a[i] = t[n - 1 - i];
    free(t);
}
void vla(int n, double *a) {
    double t[n + 1];
    for (int i = 0; i <= n; i++) t[i] = i;
    for (int i = 0; i < n; i++) a[i] += t[i + 1] - t[i];
}
void to_one_value(double *total) {
    double s = 0;
    for (int i = 0; i < 8; i++) for (int j = 0; j < 16; j++) s += i + j * width;
    *total = s;
}

/* ---- values ---- */

void mixed(int n, double *y, const float *x, double c) { for (int i = 0; i < n; i++) y[i] += c * x[i]; }
void integers(int n, long *a, const long *b) { for (int i = 0; i < n; i++) a[i] = a[i] * 3L + b[i] - i; }
void constants(int n, double *a) { for (int i = 0; i < n; i++) a[i] = 7 / 2 + 1 / 2 * i + -7 / 2 + 07 + 0x10 + 1e1; }
void quotients(int n, double *a) { for (int i = 0; i < n; i++) a[i / 2] += a[(i + 3) % 4] * (i % 3); }
void order(int n, double *a, double *b) { for (int i = 0; i < n; i++) a[i] = a[i] - (b[i] - a[i]) - -b[i] * (a[i] / 3.0 / (b[i] + 9)); }
void functions(int n, double *a, double *b) {
    for (int i = 0; i < n; i++) a[i] = sqrt(fabs(b[i])) + fmax(a[i], b[i]) * fmin(a[i], 0.5) + pow(b[i], 2) + exp(b[i]);
}
void single(int n, float *a, float *b) { for (int i = 0; i < n; i++) a[i] = 0.1f * a[i] + sqrtf(fabsf(b[i])) - (float) i; }
void z(int n, double complex *x, double complex *y, double c) { for (int i = 0; i < n; i++) y[i] = y[i] + c * x[i]; }

void ratios(int n, double *a) { for (int i = 0; i < n; i++) a[i] = (double) (i * 3 % 7) / n + (double) i / 3 - 1.0 / 3 * i; }
void float_ratios(int n, float *a) { for (int i = 0; i < n; i++) { float h = (float) i / (n + 2); a[i] += (float) (i + 1) / 3; a[i] = a[i] * h + 0.1f; } }
void collapsed(int n, double A[n][n], double *x) {
    #pragma omp parallel for collapse(2)
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < 3; k++) A[i][j] += x[k];
}

void float_number(int n, double *y, const double *x, float *z) {
    float h = 1.0f / (n + 1);
    const float half = 0.5f;
    for (int i = 0; i < n; i++) { y[i] = h * x[i] + half; z[i] = h * z[i] * half; }
}

void chars(int n, const signed char *s, int *t, signed char *u) {
    for (int i = 0; i < n - 1; i++) { t[i] = (s[i] + s[i + 1] == 3 ? 1 : 0) + s[i] * 100 - 'a'; u[i] = s[i] + s[i + 1]; }
}
void shorts(int n, short *a, const signed char *b) { for (int i = 0; i < n; i++) a[i] = -a[i] * b[i] + 3; }
void wider(int n, float complex *z, const double *x) { for (int i = 0; i < n; i++) z[i] = z[i] * x[i]; }
float narrowed(int n, const double *a) { double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }
enum sizes { FIRST = 2, SECOND, LAST = SECOND + 3 };
void enumerated(int n, double *a) { for (int i = FIRST; i < LAST; i++) a[i] = SECOND; }
static double real_of(int k) { return k; }
void converted(int n, double *a) { for (int i = 0; i < n; i++) a[i] = real_of(i) / 2 + (i > 2 ? 1 : 2.5) / 2; }

/* ---- choices ---- */

void edges(int n, real u[n], real v[n]) {
    for (int i = 0; i < n; i++) v[i] = i == 0 || i == n - 1 ? u[i] : 0.5f * (u[i - 1] + u[i + 1]);
}
void relu(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0; }
void clamp(int n, double *x) { for (int i = 0; i < n; i++) x[i] = x[i] < -1 ? -1 : x[i] > 1 ? 1 : x[i]; }
void both_ends(int n, double *a, double *b) {
    double lo = a[0], hi = a[0];
    for (int i = 1; i < n; i++) { if (a[i] < lo) lo = a[i]; else if (a[i] > hi) hi = a[i]; }
    b[0] = lo; b[1] = hi;
}
void and_or(int n, double *a, const double *b) {
    for (int i = 0; i < n; i++) a[i] = (b[i] > 0 && a[i] < 1) || !(b[i] > -1) ? a[i] * b[i] : a[i] + b[i];
}
void known_and_data(int n, double *a) { double s = 0; for (int i = 0; i < n; i++) { if (i > 2 && a[i] > s) s = a[i]; a[i] = s; } }
void changed_inside(int n, double *a) {
    double s = 0.5, t = 0;
    for (int i = 0; i < n; i++) { if (a[i] > s) { s = a[i]; t = s * 2; } else { t -= s; s = 0.1; } a[i] = t; }
}
void known_inside_data(int n, double *a) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        if (a[i] > s) { if (i > 2) s = a[i]; else s = 1; a[i] = i == 3 ? 1 : 2.5; } else { s = s + 1; a[i] = s; }
    }
}
void chain(int n, double *a) {
    for (int i = 0; i < n; i++) { if (i < 2) a[i] = 1; else if (i == n - 1) a[i] = 2; else a[i] = 3; }
}
void only_else(int n, double *a) { for (int i = 0; i < n; i++) { if (i < 2) ; else a[i] = 3; } }

/* ---- functions ---- */

static double sum3(const double *p) { double s = 0; for (int i = 0; i < 3; i++) s += p[i]; return s; }
static inline double square(double x) { return x * x; }
static void scaled(int n, double *x, double by) { by = by * 0.5; for (int i = 0; i < n; i++) x[i] *= by; }
static void keep_old(double x, double *t, double *a) { *t = *t + 1; a[0] = x; }
void old_value(int n, double *t, double *a) { for (int i = 0; i < n; i++) keep_old(*t, t, a + i); }
void calls(int n, double *a, double *b) {
    for (int i = 0; i < n; i++) a[i] = sum3(b + i) * sum3(&b[i + 1]) + square(a[i] + 1);
    scaled(n, a, 3);
}
static double twice_squared(double x) { double y = x * x; return y + x; }
void several_calls(int n, double *a) {
    for (int i = 0; i < n; i++)
        a[i] = twice_squared(0.5) + twice_squared(a[i]) + twice_squared((double) i / 3) + twice_squared(-a[i]);
}
void of_the_file(int n, double *a) { for (int i = 0; i < n; i++) a[i] = a[i] * 0.5 + table[1][2] * 0.0 + level * 0.0; }
double dot(size_t n, const double *x, const double *y) { double s = 0; for (size_t i = 0; i < n; i++) s += x[i] * y[i]; return s; }
float largest(int n, float *x) { float m = 0; for (int i = 0; i < n; i++) m = fmaxf(m, fabsf(x[i])); return 2 * m; }
typedef double ten[10];
void pointer_to_rows_of_rows(int n, ten (*a)[3]) {
    for (int i = 0; i < n; i++) for (int j = 0; j < 3; j++) for (int k = 0; k < 10; k++) a[i][j][k] += i + j - k;
}
void truth_in_casts(int n, double *a, int *k) {
    for (int i = 0; i < n; i++) a[i] = (long) k[i] ? 1.0 : (int) (a[i] > 0.5) ? 2.0 : 3.0;
}
