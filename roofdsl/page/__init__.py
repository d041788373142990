"""`explore`: an offline HTML page with sliders that evaluates the engine's own expressions."""
