double a[m][n], b[m][n], c[m][n];
double q;

for(int i=0; i<m; ++i)
    for(int j=0; j<n; ++j)
        a[i][j] = b[i][j] + q * c[i][j];
