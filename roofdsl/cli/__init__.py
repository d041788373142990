"""The command line: thin wrappers of the Python API; no modelling here."""
