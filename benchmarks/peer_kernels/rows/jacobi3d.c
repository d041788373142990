double A[m][n][n], B[m][n][n];
double c0, c1;

for(int i=1; i<m-1; ++i)
    for(int j=1; j<n-1; ++j)
        for(int k=1; k<n-1; ++k)
            B[i][j][k] = c0 * A[i][j][k] + c1 * (A[i-1][j][k] + A[i+1][j][k] + A[i][j-1][k] + A[i][j+1][k] + A[i][j][k-1] + A[i][j][k+1]);
