/* Kernels in the style of well-known codes and benchmark suites, written from memory as their authors write them. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DATA_TYPE double
#define SCALAR_VAL(x) x
#define NX 12
#define NY 10
#define POLYBENCH_1D(var, d) var[d]
#define POLYBENCH_2D(var, d1, d2) var[d1][d2]
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define DOT(A, B) ((A.x) * (B.x) + (A.y) * (B.y) + (A.z) * (B.z))

/* ---- N-body ---- */

typedef struct { float x, y, z, vx, vy, vz; } Body;
void bodyForce(Body *p, float dt, int n) {
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < n; i++) {
        float Fx = 0.0f; float Fy = 0.0f; float Fz = 0.0f;
        for (int j = 0; j < n; j++) {
            float dx = p[j].x - p[i].x;
            float dy = p[j].y - p[i].y;
            float dz = p[j].z - p[i].z;
            float distSqr = dx*dx + dy*dy + dz*dz + 1e-9f;
            float invDist = 1.0f / sqrtf(distSqr);
            float invDist3 = invDist * invDist * invDist;
            Fx += dx * invDist3; Fy += dy * invDist3; Fz += dz * invDist3;
        }
        p[i].vx += dt*Fx; p[i].vy += dt*Fy; p[i].vz += dt*Fz;
    }
}

struct planet { double x, y, z; double vx, vy, vz; double mass; };
void advance(int nbodies, struct planet *bodies, double dt) {
    int i, j;
    for (i = 0; i < nbodies; i++) {
        struct planet *b = &(bodies[i]);
        for (j = i + 1; j < nbodies; j++) {
            struct planet *b2 = &(bodies[j]);
            double dx = b->x - b2->x;
            double dy = b->y - b2->y;
            double dz = b->z - b2->z;
            double inv_distance = 1.0/sqrt(dx * dx + dy * dy + dz * dz);
            double mag = dt * inv_distance * inv_distance * inv_distance;
            b->vx -= dx * b2->mass * mag;
            b->vy -= dy * b2->mass * mag;
            b->vz -= dz * b2->mass * mag;
            b2->vx += dx * b->mass * mag;
            b2->vy += dy * b->mass * mag;
            b2->vz += dz * b->mass * mag;
        }
    }
    for (i = 0; i < nbodies; i++) {
        struct planet *b = &(bodies[i]);
        b->x += dt * b->vx;
        b->y += dt * b->vy;
        b->z += dt * b->vz;
    }
}

/* ---- molecular dynamics ---- */

typedef struct { double x, y, z; } real3;
typedef struct { int natoms; double cutsq, box; real3 *x, *f; double energy; } Atoms;
static inline real3 minus(real3 a, real3 b) { real3 c = {a.x - b.x, a.y - b.y, a.z - b.z}; return c; }
void lennard_jones(Atoms *atoms) {
    for (int i = 0; i < atoms->natoms; i++) {
        real3 fi = {0.0, 0.0, 0.0};
        const real3 xi = atoms->x[i];
        for (int j = 0; j < i; j++) {
            real3 d = minus(xi, atoms->x[j]);
            double rsq = d.x * d.x + d.y * d.y + d.z * d.z;
            double sr2 = 1.0 / rsq;
            double sr6 = sr2 * sr2 * sr2;
            double force = 48.0 * sr6 * (sr6 - 0.5) * sr2;
            fi.x += d.x * force; fi.y += d.y * force; fi.z += d.z * force;
            atoms->energy += 4.0 * sr6 * (sr6 - 1.0);
        }
        atoms->f[i].x += fi.x; atoms->f[i].y += fi.y; atoms->f[i].z += fi.z;
    }
}

#define NUMBER_PAR_PER_BOX 3
typedef struct { double v, x, y, z; } FOUR_VECTOR;
typedef struct { double x, y, z; } THREE_VECTOR;
typedef struct { double alpha; } par_str;
void lavamd(par_str par, int boxes, FOUR_VECTOR *rv, double *qv, FOUR_VECTOR *fv) {
    double a2 = 2.0 * par.alpha * par.alpha;
    int l, k, i, j;
    for (l = 0; l < boxes; l = l + 1) {
        FOUR_VECTOR *rA = &rv[l * NUMBER_PAR_PER_BOX];
        FOUR_VECTOR *fA = &fv[l * NUMBER_PAR_PER_BOX];
        for (k = 0; k < boxes; k++) {
            FOUR_VECTOR *rB = &rv[k * NUMBER_PAR_PER_BOX];
            double *qB = &qv[k * NUMBER_PAR_PER_BOX];
            for (i = 0; i < NUMBER_PAR_PER_BOX; i = i + 1) {
                for (j = 0; j < NUMBER_PAR_PER_BOX; j = j + 1) {
                    THREE_VECTOR d;
                    double r2 = rA[i].v + rB[j].v - DOT(rA[i], rB[j]);
                    double u2 = a2 * r2;
                    double vij = exp(-u2);
                    double fs = 2. * vij;
                    d.x = rA[i].x - rB[j].x;
                    d.y = rA[i].y - rB[j].y;
                    d.z = rA[i].z - rB[j].z;
                    fA[i].v += qB[j] * vij;
                    fA[i].x += qB[j] * fs * d.x;
                    fA[i].y += qB[j] * fs * d.y;
                    fA[i].z += qB[j] * fs * d.z;
                }
            }
        }
    }
}

/* ---- sparse and dense linear algebra ---- */

typedef struct { int rows, width; double *val; double *gathered; } ell_matrix;
void ell_spmv(const ell_matrix *A, double *y) {
    for (int i = 0; i < A->rows; i++) {
        double sum = 0.0;
        for (int k = 0; k < A->width; k++) sum += A->val[k * A->rows + i] * A->gathered[k * A->rows + i];
        y[i] = sum;
    }
}

struct Vector_STRUCT { int localLength; double *values; void *optimizationData; };
typedef struct Vector_STRUCT Vector;
struct Stencil_STRUCT { int nx, ny; double diagonal, off; };
void ComputeWAXPBY(const int n, const double alpha, const Vector *x, const double beta, const Vector *y, Vector *w) {
    const double *const xv = x->values;
    const double *const yv = y->values;
    double *const wv = w->values;
    for (int i = 0; i < n; i++) wv[i] = alpha * xv[i] + beta * yv[i];
}
void ComputeDotProduct(const int n, const Vector *x, const Vector *y, double *result) {
    double local_result = 0.0;
    double *xv = x->values;
    double *yv = y->values;
    if (yv == xv) {
        for (int i = 0; i < n; i++) local_result += xv[i] * xv[i];
    } else {
        for (int i = 0; i < n; i++) local_result += xv[i] * yv[i];
    }
    *result = local_result;
}
void symgs(const struct Stencil_STRUCT *A, const Vector *r, Vector *x) {
    const double *const rv = r->values;
    double *const xv = x->values;
    const int nx = A->nx, ny = A->ny;
    for (int i = 1; i < nx - 1; i++)
        for (int j = 1; j < ny - 1; j++) {
            double sum = rv[i * ny + j];
            sum -= A->off * (xv[(i - 1) * ny + j] + xv[(i + 1) * ny + j] + xv[i * ny + j - 1] + xv[i * ny + j + 1]);
            xv[i * ny + j] = sum / A->diagonal;
        }
    for (int i = nx - 2; i >= 1; i--)
        for (int j = ny - 2; j >= 1; j--) {
            double sum = rv[i * ny + j];
            sum -= A->off * (xv[(i - 1) * ny + j] + xv[(i + 1) * ny + j] + xv[i * ny + j - 1] + xv[i * ny + j + 1]);
            xv[i * ny + j] = sum / A->diagonal;
        }
}

/* ---- STREAM and PolyBench ---- */

#define STREAM_ARRAY_SIZE 40
#define STREAM_TYPE double
#define OFFSET 2
static STREAM_TYPE a[STREAM_ARRAY_SIZE + OFFSET], b[STREAM_ARRAY_SIZE + OFFSET], c[STREAM_ARRAY_SIZE + OFFSET];
void tuned_STREAM_Triad(STREAM_TYPE scalar) {
    long j;
#pragma omp parallel for
    for (j=0; j<STREAM_ARRAY_SIZE; j++)
        a[j] = b[j]+scalar*c[j];
}
void kernel_jacobi_2d(int tsteps, int n, DATA_TYPE POLYBENCH_2D(A, NX, NX), DATA_TYPE POLYBENCH_2D(B, NX, NX)) {
    int t, i, j;
#pragma scop
    for (t = 0; t < tsteps; t++) {
        for (i = 1; i < NX - 1; i++)
            for (j = 1; j < NX - 1; j++)
                B[i][j] = SCALAR_VAL(0.2) * (A[i][j] + A[i][j-1] + A[i][1+j] + A[1+i][j] + A[i-1][j]);
        for (i = 1; i < NX - 1; i++)
            for (j = 1; j < NX - 1; j++)
                A[i][j] = SCALAR_VAL(0.2) * (B[i][j] + B[i][j-1] + B[i][1+j] + B[1+i][j] + B[i-1][j]);
    }
#pragma endscop
}
void kernel_atax(DATA_TYPE POLYBENCH_2D(A, NX, NY), DATA_TYPE POLYBENCH_1D(x, NY), DATA_TYPE POLYBENCH_1D(y, NY), DATA_TYPE POLYBENCH_1D(tmp, NX)) {
    int i, j;
    for (i = 0; i < NY; i++) y[i] = 0;
    for (i = 0; i < NX; i++) {
        tmp[i] = SCALAR_VAL(0.0);
        for (j = 0; j < NY; j++) tmp[i] = tmp[i] + A[i][j] * x[j];
        for (j = 0; j < NY; j++) y[j] = y[j] + A[i][j] * tmp[i];
    }
}

/* ---- Rodinia ---- */

typedef float FLOAT;
void single_iteration(FLOAT *result, FLOAT *temp, FLOAT *power, int row, int col, FLOAT Cap_1, FLOAT Rx_1, FLOAT Ry_1, FLOAT Rz_1, FLOAT amb_temp) {
    int r, c;
    for (r = 1; r < row - 1; r++) {
        for (c = 1; c < col - 1; c++) {
            FLOAT delta = Cap_1 * (power[r*col+c] +
                (temp[(r+1)*col+c] + temp[(r-1)*col+c] - 2.f*temp[r*col+c]) * Ry_1 +
                (temp[r*col+c+1] + temp[r*col+c-1] - 2.f*temp[r*col+c]) * Rx_1 +
                (amb_temp - temp[r*col+c]) * Rz_1);
            result[r*col+c] = temp[r*col+c] + delta;
        }
    }
}
void srad_gradient(int rows, int cols, float *J, float *dN, float *dS, float *dW, float *dE, float *c, float q0sqr) {
    for (int i = 1; i < rows - 1; i++) {
        for (int j = 1; j < cols - 1; j++) {
            int k = i * cols + j;
            float Jc = J[k];
            dN[k] = J[k - cols] - Jc;
            dS[k] = J[k + cols] - Jc;
            dW[k] = J[k - 1] - Jc;
            dE[k] = J[k + 1] - Jc;
            float G2 = (dN[k]*dN[k] + dS[k]*dS[k] + dW[k]*dW[k] + dE[k]*dE[k]) / (Jc*Jc);
            float L = (dN[k] + dS[k] + dW[k] + dE[k]) / Jc;
            float num = (0.5f*G2) - ((1.0f/16.0f)*(L*L));
            float den = 1 + (.25f*L);
            float qsqr = num/(den*den);
            den = (qsqr-q0sqr) / (q0sqr * (1+q0sqr));
            float c_loc = 1.0f / (1.0f+den);
            if (c_loc < 0) { c_loc = 0; } else if (c_loc > 1) { c_loc = 1; }
            c[k] = c_loc;
        }
    }
}
typedef struct latLong { float lat; float lng; } LatLong;
void nearest(LatLong *locations, float *distances, int numRecords, float lat, float lng) {
    for (int globalId = 0; globalId < numRecords; globalId++) {
        LatLong *latLong = locations + globalId;
        distances[globalId] = sqrtf((lat-latLong->lat)*(lat-latLong->lat)+(lng-latLong->lng)*(lng-latLong->lng));
    }
}

/* ---- signals and images ---- */

typedef struct { double re, im; } cplx;
static inline cplx cmul(cplx a, cplx b) { return (cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
void butterflies(int half, int blocks, cplx *x, const cplx *w) {
    for (int b = 0; b < blocks; b++)
        for (int k = 0; k < half; k++) {
            cplx *even = &x[b * 2 * half + k], *odd = &x[b * 2 * half + k + half];
            cplx t = cmul(w[k], *odd);
            cplx u = *even;
            even->re = u.re + t.re; even->im = u.im + t.im;
            odd->re = u.re - t.re; odd->im = u.im - t.im;
        }
}
typedef struct { float r, g, b; } RGB;
typedef struct { int width, height; RGB *data; } Image;
void box_blur(const Image *in, Image *res) {
    const int w = in->width, h = in->height;
    for (int y = 1; y < h - 1; y++)
        for (int x = 1; x < w - 1; x++) {
            RGB sum = {0, 0, 0};
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    const RGB *q = &in->data[(y + dy) * w + (x + dx)];
                    sum.r += q->r; sum.g += q->g; sum.b += q->b;
                }
            res->data[y * w + x].r = sum.r / 9.0f;
            res->data[y * w + x].g = sum.g / 9.0f;
            res->data[y * w + x].b = sum.b / 9.0f;
        }
}
void prefix_sum(size_t n, const double *x, double *y) {
    double running = 0;
    size_t i = 0;
    do { running += x[i]; y[i] = running; } while (++i < n);
}
void prefix_in_place(int n, double *x) { for (int i = 1; i < n; i++) x[i] += x[i - 1]; }
void reversed_copy(int n, double *to, const double *from) { const double *end = from + n; while (n--) *to++ = *--end; }

/* ---- lattices and fields ---- */

enum direction { CENTER, NORTH, SOUTH, EAST, WEST, NDIR };
typedef struct { double f[NDIR]; } site;
typedef struct { int nx, ny; double omega; site *now, *next; } lattice;
static double density(const site *s) { double rho = 0; for (int d = 0; d < NDIR; d++) rho += s->f[d]; return rho; }
void collide_and_stream(lattice *l) {
    for (int y = 1; y < l->ny - 1; y++)
        for (int x = 1; x < l->nx - 1; x++) {
            const site *s = &l->now[y * l->nx + x];
            double eq = density(s) / NDIR;
            l->next[y * l->nx + x].f[CENTER] = s->f[CENTER] + l->omega * (eq - s->f[CENTER]);
            l->next[(y + 1) * l->nx + x].f[NORTH] = s->f[NORTH] + l->omega * (eq - s->f[NORTH]);
            l->next[(y - 1) * l->nx + x].f[SOUTH] = s->f[SOUTH] + l->omega * (eq - s->f[SOUTH]);
            l->next[y * l->nx + x + 1].f[EAST] = s->f[EAST] + l->omega * (eq - s->f[EAST]);
            l->next[y * l->nx + x - 1].f[WEST] = s->f[WEST] + l->omega * (eq - s->f[WEST]);
        }
}
typedef struct { double ex, ey, hz; } yee;
void fdtd(int nx, int ny, yee u[nx][ny], double ch) {
    for (int i = 0; i < nx - 1; i++)
        for (int j = 0; j < ny - 1; j++)
            u[i][j].hz -= ch * (u[i][j + 1].ex - u[i][j].ex - u[i + 1][j].ey + u[i][j].ey);
}
typedef struct { double re, im; } su3_element;
typedef struct { su3_element e[3][3]; } su3_matrix;
typedef struct { su3_element c[3]; } su3_vector;
void mult_su3_mat_vec(int sites, const su3_matrix *U, const su3_vector *v, su3_vector *r) {
    for (int s = 0; s < sites; s++)
        for (int i = 0; i < 3; i++) {
            double re = 0, im = 0;
            for (int j = 0; j < 3; j++) {
                re += U[s].e[i][j].re * v[s].c[j].re - U[s].e[i][j].im * v[s].c[j].im;
                im += U[s].e[i][j].re * v[s].c[j].im + U[s].e[i][j].im * v[s].c[j].re;
            }
            r[s].c[i].re = re; r[s].c[i].im = im;
        }
}
