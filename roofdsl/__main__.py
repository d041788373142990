"""`python -m roofdsl` is `roofdsl`."""

from roofdsl.cli.main import main

if __name__ == "__main__":
    main()
