"""`python -m spectral_mf`: the command line, where the script `spectral-mf` is not on the path."""

from spectral_mf.cli import main

if __name__ == "__main__":
    main()
