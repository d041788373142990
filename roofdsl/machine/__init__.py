"""Machines: peaks, caches, memories, ceilings and links, each number with its source."""
