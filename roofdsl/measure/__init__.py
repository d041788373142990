"""Running what was generated: timing, results, and what a device turns out to be; heavy imports inside functions."""
