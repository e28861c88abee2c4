"""What is measured for each claim; `data/claims.toml` says which function belongs to which claim."""
