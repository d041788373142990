double A[n][n], x[n], y[n];

for(int i=0; i<n; ++i)
    for(int j=0; j<n; ++j)
        y[i] += A[i][j] * x[j];
