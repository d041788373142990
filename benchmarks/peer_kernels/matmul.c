double A[n][n], B[n][n], C[n][n];

for(int k=0; k<n; ++k)
    for(int i=0; i<n; ++i)
        for(int j=0; j<n; ++j)
            C[i][j] += A[i][k] * B[k][j];
