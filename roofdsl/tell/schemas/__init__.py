"""JSON Schemas (draft 2020-12) of everything that commands print with `--json`.

`parts` is the vocabulary, `shared` has what several documents contain, `derivations`, `predictions`, `runs` and `lists`
have the documents, and `commands` says which command prints which.
"""
