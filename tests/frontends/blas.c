/* Functions whose loops depend on arguments, as the reference BLAS and others have them. */
#include <assert.h>

void dgemm(int m, int n, int k, double alpha, const double *A, int lda, const double *B, int ldb, double beta, double *C, int ldc)
{
    int i, j, l;
    double temp;
    assert(ldc >= m && lda >= m && ldb >= k);
    if (m == 0 || n == 0 || ((alpha == 0.0 || k == 0) && beta == 1.0)) return;
    if (alpha == 0.0) {
        if (beta == 0.0) {
            for (j = 0; j < n; j++) for (i = 0; i < m; i++) C[j * ldc + i] = 0.0;
        } else {
            for (j = 0; j < n; j++) for (i = 0; i < m; i++) C[j * ldc + i] = beta * C[j * ldc + i];
        }
    } else {
        for (j = 0; j < n; j++) {
            if (beta == 0.0) {
                for (i = 0; i < m; i++) C[j * ldc + i] = 0.0;
            } else if (beta != 1.0) {
                for (i = 0; i < m; i++) C[j * ldc + i] = beta * C[j * ldc + i];
            }
            for (l = 0; l < k; l++) {
                temp = alpha * B[j * ldb + l];
                for (i = 0; i < m; i++) C[j * ldc + i] += temp * A[l * lda + i];
            }
        }
    }
}
void daxpy(int n, double a, const double *x, int incx, double *y, int incy)
{
    if (n <= 0) return;
    if (a == 0.0) return;
    if (incx == 1 && incy == 1) {
        for (int i = 0; i < n; i++) y[i] += a * x[i];
    } else {
        int ix = 0, iy = 0;
        for (int i = 0; i < n; i++) { y[iy] += a * x[ix]; ix += incx; iy += incy; }
    }
}
void waxpby(int n, const double alpha, const double *x, const double beta, const double *y, double *w)
{
    if (alpha == 1.0) { for (int i = 0; i < n; i++) w[i] = x[i] + beta * y[i]; }
    else if (beta == 1.0) { for (int i = 0; i < n; i++) w[i] = alpha * x[i] + y[i]; }
    else { for (int i = 0; i < n; i++) w[i] = alpha * x[i] + beta * y[i]; }
}
void dgemv(char trans, int n, double alpha, const double *a, const double *x, double beta, double *y)
{
    if (beta == 0.0) { for (int i = 0; i < n; i++) y[i] = 0; }
    else if (beta != 1.0) { for (int i = 0; i < n; i++) y[i] *= beta; }
    if (trans == 'N') { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i] += alpha * a[i * n + j] * x[j]; }
    else { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[j] += alpha * a[i * n + j] * x[i]; }
}
void single(float alpha, int n, float *x)
{
    if (alpha == 0.1) { for (int i = 0; i < n; i++) x[i] *= alpha; }
    else { for (int i = 0; i < n; i++) x[i] = 0; }
}
void residual(int n, const double *a, const double *x, double *r) { dgemv('N', n, -1.0, a, x, 1.0, r); }
