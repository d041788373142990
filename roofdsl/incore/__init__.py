"""In-core time: how long a processor takes for a launch when all data lie in its nearest cache."""
