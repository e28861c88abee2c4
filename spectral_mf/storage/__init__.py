"""Run files: HDF5 that is also valid NetCDF-4, readable at any moment of the run and after its death.

`docs/file-format.md` describes the layout.
"""

from spectral_mf.storage.export import export, to_xarray
from spectral_mf.storage.publishing import is_claimed
from spectral_mf.storage.reading import RunSummary, load_run, read_info
from spectral_mf.storage.run_file import RunFile, rescue, save_run

__all__ = ["RunFile", "RunSummary", "export", "is_claimed", "load_run", "read_info", "rescue", "save_run", "to_xarray"]
