"""What is kept on disk: files that are always whole, and what was derived before, by meaning and version, never trusted
without its checksum (docs/cache.md).

`recall` is the one door; analyses pass through it what takes them long, and know nothing of files.
"""
