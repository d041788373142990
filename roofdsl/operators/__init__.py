"""Expected times of library operators on a GPU, from the way PyTorch and its libraries launch them.

A kernel that a person writes is predicted from its loops (`roofdsl.predict`). The code of a library's operator is not
available, but its launch is known: blocks and threads, passes over rows, tiles of a product. These are modeled here.
"""
