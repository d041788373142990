"""The target languages of code generation: each file is one, and `roofdsl.codegen.registry` finds it here."""
