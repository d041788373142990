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
