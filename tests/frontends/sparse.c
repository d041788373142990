/* Sparse matrices, graphs and meshes as their authors write them: integer arrays in subscripts and loop bounds. */
#include <stddef.h>
#include <stdint.h>

typedef struct { int nrows, ncols, nnz; int *rowptr; int *colind; double *values; } csr_matrix;
struct csr { int n; int *rowptr; int *col; double *val; };
typedef struct { size_t n, nnz; uint32_t *col, *row; float *v; } coo_matrix;
struct edge { int src, dst; };

/* ---- compressed rows ---- */

void csr_in_a_structure(const struct csr *A, const double *x, double *y) {
    for (int i = 0; i < A->n; i++) {
        double s = 0;
        for (int k = A->rowptr[i]; k < A->rowptr[i + 1]; k++) s += A->val[k] * x[A->col[k]];
        y[i] = s;
    }
}
void csr_with_locals(const csr_matrix *A, const double *x, double *y) {
    int i, j;
#pragma omp parallel for private(j)
    for (i = 0; i < A->nrows; i++) {
        int start = A->rowptr[i], end = A->rowptr[i + 1];
        double sum = 0.0;
        for (j = start; j < end; j++) { int c = A->colind[j]; sum += A->values[j] * x[c]; }
        y[i] = sum;
    }
}
void csr_by_value(csr_matrix A, double *x, double *y) {
    int *ia = A.rowptr, *ja = A.colind;
    double *a = A.values;
    for (int i = 0; i < A.nrows; i++) {
        y[i] = 0;
        for (int k = ia[i]; k < ia[i + 1]; ++k) y[i] += a[k] * x[ja[k]];
    }
}
void csr_rows_as_pointers(int n, const int *rowptr, const int *col, const double *val, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        const double *v = val + rowptr[i];
        const int *c = &col[rowptr[i]];
        int len = rowptr[i + 1] - rowptr[i];
        double s = 0;
        for (int k = 0; k < len; k++) s += v[k] * x[c[k]];
        y[i] = s;
    }
}
void csr_declared(int n, int m, int nz, const int rowptr[n + 1], const int col[nz], const double val[nz], const double x[m], double y[n]) {
    for (int i = 0; i < n; i++) for (int k = rowptr[i]; k < rowptr[i + 1]; k++) y[i] += val[k] * x[col[k]];
}
void sparse_times_dense(int n, int m, const int *rowptr, const int *col, const double *val, const double *X, double *Y) {
    for (int i = 0; i < n; i++)
        for (int k = rowptr[i]; k < rowptr[i + 1]; k++)
            for (int j = 0; j < m; j++) Y[i * m + j] += val[k] * X[col[k] * m + j];
}
void csc(int ncol, const int *colptr, const int *row, const double *val, const double *x, double *y) {
    for (int j = 0; j < ncol; j++) for (int k = colptr[j]; k < colptr[j + 1]; k++) y[row[k]] += val[k] * x[j];
}
void gauss_seidel(const csr_matrix *A, const double *r, double *x, const double *diag) {
    for (int i = 0; i < A->nrows; i++) {
        double sum = r[i];
        for (int j = A->rowptr[i]; j < A->rowptr[i + 1]; j++) { int c = A->colind[j]; sum -= A->values[j] * x[c]; }
        sum += x[i] * diag[i];
        x[i] = sum / diag[i];
    }
}
void jacobi_off_diagonal(const csr_matrix *A, const double *b, const double *x, double *xn) {
    for (int i = 0; i < A->nrows; i++) {
        double s = b[i], d = 1.0;
        for (int j = A->rowptr[i]; j < A->rowptr[i + 1]; j++) {
            int c = A->colind[j];
            if (c == i) d = A->values[j]; else s -= A->values[j] * x[c];
        }
        xn[i] = s / d;
    }
}
void conjugate_gradients(const csr_matrix *A, const double *p, double *Ap, double *result) {
    double pAp = 0;
    for (int i = 0; i < A->nrows; i++) {
        double s = 0;
        for (int k = A->rowptr[i]; k < A->rowptr[i + 1]; k++) s += A->values[k] * p[A->colind[k]];
        Ap[i] = s;
    }
    for (int i = 0; i < A->nrows; i++) pAp += p[i] * Ap[i];
    *result = pAp;
}
void two_matrices(int n, const int *pa, const int *ja, const double *a, const int *pb, const int *jb, const double *b, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        for (int k = pa[i]; k < pa[i + 1]; k++) y[i] += a[k] * x[ja[k]];
        for (int k = pb[i]; k < pb[i + 1]; k++) y[i] -= b[k] * x[jb[k]];
    }
}

/* ---- other formats ---- */

void coordinates(coo_matrix *A, const float *x, float *y) {
    for (size_t k = 0; k < A->nnz; k++) y[A->row[k]] += A->v[k] * x[A->col[k]];
}
void ellpack(int n, int width, const int *cols, const double *vals, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int k = 0; k < width; k++) s += vals[i * width + k] * x[cols[i * width + k]];
        y[i] = s;
    }
}
void ellpack_by_columns(int n, int width, const int cols[width][n], const double vals[width][n], const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int k = 0; k < width; k++) s += vals[k][i] * x[cols[k][i]];
        y[i] = s;
    }
}
void beginnings_and_ends(int n, const int *pb, const int *pe, const int *col, const double *val, const double *x, double *y) {
    for (int i = 0; i < n; i++) for (int k = pb[i]; k < pe[i]; k++) y[i] += val[k] * x[col[k]];
}
void ellpack_with_lengths(int n, int width, const int *length, const int *cols, const double *vals, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int k = 0; k < length[i]; k++) sum += vals[i * width + k] * x[cols[i * width + k]];
        y[i] = sum;
    }
}

/* ---- graphs, meshes, particles ---- */

void edges(int m, const struct edge *e, const double *x, double *y) { for (int k = 0; k < m; k++) y[e[k].dst] += x[e[k].src]; }
void pagerank(int n, const int *rowptr, const int *nbr, const double *rank, const double *deg, double *next, double d) {
    for (int v = 0; v < n; v++) {
        double s = 0;
        for (int e = rowptr[v]; e < rowptr[v + 1]; e++) { int u = nbr[e]; s += rank[u] / deg[u]; }
        next[v] = (1 - d) / n + d * s;
    }
}
void elements(int ne, const int *conn, const double *u, double *f, const double *K) {
    for (int e = 0; e < ne; e++)
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++) f[conn[e * 4 + a]] += K[(e * 4 + a) * 4 + b] * u[conn[e * 4 + b]];
}
void neighbor_lists(int n, int maxn, const int *numneigh, const int *neigh, const double *x, double *f) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < numneigh[i]; k++) { int j = neigh[i * maxn + k]; double d = x[i] - x[j]; f[i] += d; }
}
void embedding(int n, int d, const int *token, const float *table, float *found) {
    for (int i = 0; i < n; i++) {
        const float *row = &table[token[i] * d];
        for (int j = 0; j < d; j++) found[i * d + j] = row[j];
    }
}
void permuted_twice(int n, const int *p, const int *q, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[p[q[i]]]; }
void histogram(int n, const int *bin, int *count) { for (int i = 0; i < n; i++) count[bin[i]]++; }
void histogram_of_short(int n, const short *bin, int count[256]) { for (int i = 0; i < n; i++) { int b = bin[i]; count[b] += 1; } }
void weighted_histogram(int n, const long *bin, const float *w, float *count) { for (int i = 0; i < n; i++) count[bin[i]] += w[i]; }
void every_second_offset(int n, const int *off, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += x[2 * off[i] + 1] + x[i + off[i]]; }
void index_as_data(int n, const int *k, long *s, double *x) { for (int i = 0; i < n; i++) { int j = k[i]; x[j] = 2; s[i] += j; } }
static void row_sum(int begin, int end, const double *v, double *s) { for (int k = begin; k < end; k++) *s += v[k]; }
void rows_by_a_function(int n, const int *p, const double *v, double *y) { for (int i = 0; i < n; i++) row_sum(p[i], p[i + 1], v, &y[i]); }
void open_and_declared(int n, const int *c, const double x[16], double *y) { for (int i = 0; i < n; i++) y[c[i]] += x[c[i]]; }
