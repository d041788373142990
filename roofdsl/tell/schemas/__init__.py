"""JSON Schemas (draft 2020-12) of everything that commands print with `--json`.

`parts` has the vocabulary. `derivations`, `predictions`, `runs` and `lists` have the documents, and DEFINITIONS that
several documents use. `commands` says which command prints which document.
"""
