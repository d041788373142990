"""The time of a kernel's instructions, with all data in the nearest cache: from compiled code or from stated facts."""
