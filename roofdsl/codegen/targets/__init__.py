"""The languages that code is generated in: each file is one, and `roofdsl.codegen.registry` finds it here."""
