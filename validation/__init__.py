"""What checks the solvers: Monte Carlo, phases, comparisons."""
