double A[m][n], B[m][n];
double s;

for(int i=1; i<m-1; ++i)
    for(int j=1; j<n-1; ++j)
        B[i][j] = s * (A[i][j] + A[i][j-1] + A[i][j+1] + A[i+1][j] + A[i-1][j]);
