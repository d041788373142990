"""The speed of light: the minimum time of any code for a kernel on a machine, and whether a claim is possible.

floor: the time that no order of the kernel's operations can beat. schedule: the best order that was found. claim: a
measured or claimed time, judged by the floor.
"""
