"""Reference tables that ship with the package."""
