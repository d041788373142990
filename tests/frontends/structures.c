#include <stddef.h>
struct particle { double x, y, z, m; };
typedef struct { double pos[3], vel[3]; float q; } body;
typedef struct { int n; double *a; double total; } vec;
typedef struct { double x, y, z; } vec3;
struct grid { int nx, ny; double h; double *u; };
static vec3 sub(vec3 a, vec3 b) { vec3 r; r.x = a.x - b.x; r.y = a.y - b.y; r.z = a.z - b.z; return r; }
static vec3 scale(vec3 a, double s) { return (vec3){a.x * s, a.y * s, a.z * s}; }
static double dot(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
void move(int n, struct particle *p, double dt) { for (int i = 0; i < n; i++) { p[i].x += dt * p[i].y; p[i].z *= p[i].m; } }
void push(int n, body *b, double dt) { for (int i = 0; i < n; i++) for (int d = 0; d < 3; d++) b[i].pos[d] += dt * b[i].vel[d]; }
void vscale(vec *v, double s) { for (int i = 0; i < v->n; i++) v->a[i] *= s; }
void vsum(vec *v) { for (int i = 0; i < v->n; i++) v->total += v->a[i]; }
void smooth(struct grid g, double *w) { for (int i = 1; i < g.nx - 1; i++) for (int j = 0; j < g.ny; j++) w[i * g.ny + j] = g.h * (g.u[(i-1) * g.ny + j] + g.u[(i+1) * g.ny + j]); }
void cells(int n, int m, struct particle *c) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) c[i * m + j].x = c[i * m + j].y; }
void pairs(int n, vec3 *p, vec3 *f) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { vec3 d = sub(p[i], p[j]); double r = dot(d, d) + 0.5; vec3 g = scale(d, 1.0 / r); f[i].x += g.x; f[i].y += g.y; f[i].z += g.z; } }
void walk(int n, struct particle *p) { struct particle *q = p; for (int i = 0; i < n; i++) { q->x += q->y; q++; } }
void copies(int n, vec3 *a, const vec3 *b) { for (int i = 0; i < n; i++) a[i] = b[i]; }
void address(int n, struct particle *p) { for (int i = 0; i < n; i++) { struct particle *q = &p[i]; q->x += q->m; (*q).y = 0; } }
void local(int n, double *a) { for (int i = 0; i < n; i++) { vec3 d = {a[i], 2 * a[i]}; d.x += 1; a[i] = d.x + d.y + d.z; } }

/* ---- members, and structures in structures ---- */

typedef struct { double m[3][3]; } mat;
struct mixed { double x; int id; float w; };
typedef struct { vec3 pos, vel; double mass; } planet;
typedef struct { int n; planet *p; vec3 g; } cluster;
struct field { int n; double u[8], v[8]; };
struct inner { double c; int m; };
struct outer { struct inner in; struct inner *far; double *a; };
struct cell { double v; };
struct flat { double d; } one_of_the_file;
planet planets[10];
struct grid grid_of_the_file;

void mats(int n, mat *a, double *x) { for (int i = 0; i < n; i++) for (int j = 0; j < 3; j++) for (int k = 0; k < 3; k++) x[i] += a[i].m[j][k]; }
void stride_of_padding(int n, struct mixed *p, double *y) { for (int i = 0; i < n; i++) y[i] = p[i].x; }
void floats_in_padding(int n, struct mixed *p, float *y) { for (int i = 0; i < n; i++) y[i] = p[i].w; }
void nested(int n, planet *p, double dt) { for (int i = 0; i < n; i++) { p[i].pos.x += dt * p[i].vel.x; p[i].pos.z += p[i].mass; } }
void members_of_members(cluster *c, double dt) { for (int i = 0; i < c->n; i++) c->p[i].vel.y += dt * c->g.y; }
void arrays_inside(struct field *f) { for (int i = 0; i < f->n; i++) f->u[i] += f->v[i]; }
void far_and_near(struct outer *o, int n) { for (int i = 0; i < n; i++) for (int j = 0; j < o->far->m; j++) o->a[i * o->far->m + j] *= o->in.c + o->far->c; }
void one_member(int n, struct cell *c) { for (int i = 0; i < n; i++) c[i].v *= 2; }
void two_dimensions(int n, int m, struct cell c[n][m], planet p[n][m]) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) c[i][j].v = p[i][j].mass; }
void rows_of_structures(int n, int m, planet (*p)[m]) { for (int i = 0; i < n; i++) { planet *row = p[i]; for (int j = 0; j < m; j++) row[j].mass = 1; } }
void of_the_file(int n) { for (int i = 0; i < 10; i++) planets[i].mass += one_of_the_file.d; one_of_the_file.d = n; }
void grid_in_the_file(void) { for (int i = 0; i < grid_of_the_file.nx; i++) grid_of_the_file.u[i] *= grid_of_the_file.h; }
void whole_members(int n, planet *p) { for (int i = 0; i < n; i++) p[i].pos = p[i].vel; }
void swapped(int n, vec3 *p) { for (int i = 0; i < n / 2; i++) { vec3 t = p[i]; p[i] = p[n - 1 - i]; p[n - 1 - i] = t; } }
void literal(int n, vec3 *p) { for (int i = 0; i < n; i++) p[i] = (vec3){.z = p[i].x, .x = p[i].z}; }
void pointer_to_member(int n, planet *p) { for (int i = 0; i < n; i++) { double *v = &p[i].vel.y; *v += 1; vec3 *w = &p[i].pos; w->x += p[i].mass; } }
void members_set(int n, double *b) { vec v; v.n = n; v.a = b; for (int i = 0; i < v.n; i++) v.a[i] *= 2; }
void members_given(int n, double *b) { vec v = {n, b}; for (int i = 0; i < v.n; i++) v.a[i] *= 2; }
void by_value(vec v, double s) { for (int i = 0; i < v.n; i++) v.a[i] *= s; }
void counter_in_structure(int n, vec *v, const double *x) { v->n = 0; for (int i = 0; i < n; i++) v->n += 2; v->total = x[n - 1]; }
static void accumulate(vec3 *to, vec3 by, double w) { to->x += w * by.x; to->y += w * by.y; to->z += w * by.z; }
void through_a_function(int n, planet *p, vec3 *f) { for (int i = 0; i < n; i++) { accumulate(&f[i], p[i].pos, p[i].mass); accumulate(f + i, p[i].vel, 0.5); } }
static void clear(vec *v) { for (int i = 0; i < v->n; i++) v->a[i] = 0; }
void structure_handed_on(vec *v, vec *w) { clear(v); for (int i = 0; i < w->n; i++) w->a[i] = v->a[0]; }
static vec3 halved(vec3 a) { a.x *= 0.5; a.y *= 0.5; a.z *= 0.5; return a; }
void changed_argument(int n, vec3 *p) { for (int i = 0; i < n; i++) p[i] = halved(p[i]); }
static vec3 cross(vec3 a, vec3 b) { vec3 r = {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; return r; }
void of_calls(int n, vec3 *p) { for (int i = 1; i < n; i++) p[i] = cross(sub(p[i], p[i - 1]), scale(p[i], 0.5)); }
void local_arrays(int n, vec3 *p) { vec3 t[4]; for (int i = 0; i < 4; i++) t[i].x = i; for (int i = 0; i < n; i++) p[i].x += t[i % 4].x; }
static const struct grid constant_grid = {8, 4, 0.5};
void constants_of_the_file(int n, double *a) { for (int i = 0; i < n; i++) for (int j = 0; j < constant_grid.nx; j++) a[i * 8 + j] += constant_grid.h; }
typedef struct { double v[4]; } vec4;
static double hsum(const vec4 a) { return a.v[0] + a.v[1] + a.v[2] + a.v[3]; }
void arrays_in_an_argument(int n, vec4 *a, double *s) { for (int i = 0; i < n; i++) s[i] = hsum(a[i]); }
void null_pointers(vec *v) { if (!v || v->a == NULL) return; if (v->a) for (int i = 0; i < v->n; i++) v->a[i] += 1; }
