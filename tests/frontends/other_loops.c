/* Loops and branches that are read as `for` and `if`. */
void do_step_at_end(int n, double *a) { int i = 0; do { a[i] += i; i++; } while (i < n); }
void do_step_in_condition(int n, double *a) { int i = 0; do { a[i] += i; } while (++i < n); }
void do_until_zero(int n, double *a) { int i = n; do { a[i - 1] += i; } while (--i); }
void do_step_after_test(int n, double *a) { int i = n; do { a[i] += i; } while (i-- > 1); }
void do_one_more(int n, double *a) { int i = 0; do { a[i] += i; } while (i++ < n); }
void while_counting_down(int n, double *a) { int i = n; while (i--) a[i] += i; }
void while_of_an_argument(int n, double *a, double *b) { while (n-- > 0) *a++ = *b++; }
void while_step_before(int n, double *a) { int i = n; while (--i >= 0) { a[i] += i; } }
void while_counting_up(int n, double *a) { int i = 0; while (i++ < n) { a[i] += i; } a[i - 1] = 3; }
void while_read_after(int n, double *a) { int i = n; while (i --> 1) { a[i] += a[i - 1]; } a[i + 1] += 4; }
void while_unsigned(unsigned n, double *a) { unsigned i = n; while (i--) { a[i] += i; } }
void break_at_beginning(int n, double *a) { int i = 0; for (;;) { if (i >= n) break; a[i] += i; i++; } }
void break_at_end(int n, double *a) { int i = 0; for (;;) { a[i] += i; i++; if (i >= n) break; } }
void break_in_for(int n, double *a) { for (int i = 0; ; i++) { if (i == n) break; a[i] += i; } }
void break_before_end(int n, int m, double *a) { for (int i = 0; i < n; i++) { if (i >= m) break; a[i] += i; } }
void break_in_while(int n, double *a) { int i = 0; while (1) { if (i >= n) break; a[i] += i; i++; } }
void until_zero(int n, double *a) { for (int i = n; i; i--) a[i - 1] += i; }
void until_equal(int n, double *a) { for (int i = 0; i != n; ++i) a[i] += i; }
void step_in_body(int n, double *a) { for (int i = 0; i < n;) { a[i] += i; i += 2; } }
void switch_of_remainder(int n, double *a) { for (int i = 0; i < n; i++) switch (i % 3) { case 0: a[i] = 0; break; case 1: a[i] = 1; break; default: a[i] += 2; } }
void switch_of_argument(int n, int mode, double *a) { for (int i = 0; i < n; i++) switch (mode) { case 0: case 1: a[i] = 0; break; case 2: { a[i] += 1; break; } } }
enum kind { ADD, MUL };
void switch_of_enum(int n, enum kind k, double *a) { switch (k) { case ADD: for (int i = 0; i < n; i++) a[i] += 1; break; case MUL: for (int i = 0; i < n; i++) a[i] *= 2; break; } }
void else_if(int n, double *a) { for (int i = 0; i < n; i++) { if (i < 2) a[i] = 1; else if (i < 4) a[i] = 2; else if (i == n - 1) a[i] = 3; else a[i] *= 4; } }
void nested_choices(int n, double *a) { for (int i = 0; i < n; i++) a[i] = i < 2 ? 1.5 : i < 4 ? a[i] : i == n - 1 ? 3.0 : a[i] * 2; }
void do_inside(int n, int m, double *a) {
    int i = 0;
    do {
        int j = m;
        while (j--) { if (j == i) continue; a[i * m + j] += 1; }
    } while (++i < n);
}
void break_in_two_ways(int n, int m, double *a) {
    for (int i = 0; i < n; i++) { if (i > 5 || i == m) break; a[i] += i; }
}
