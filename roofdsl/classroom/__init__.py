"""Exercises as data: variants per student, answers from the engine, grading of untrusted submissions."""
