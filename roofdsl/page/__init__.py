"""`explore`: one HTML page with the engine's own expressions, to be opened offline and moved by sliders."""
