"""Brute-force answers: what the language page says, executed step by step. Nothing here is fast or clever."""
