"""Oracle, generators and golden files of the deep checks."""
