"""`explore`: one offline HTML page with sliders, which evaluates the engine's own expressions."""
