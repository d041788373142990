"""What would help a kernel on a machine, and by how much: changed kernels, each checked and predicted."""
