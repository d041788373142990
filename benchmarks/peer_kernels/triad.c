double a[n], b[n], c[n];
double q;

for(int i=0; i<n; ++i)
    a[i] = b[i] + q * c[i];
