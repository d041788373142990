"""The `.roof` language: grammar, syntax tree, checker, diagnostics and formatter."""
