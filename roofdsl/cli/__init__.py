"""The command line: thin wrappers around the Python API, without any modeling."""
