"""The FFT layer: right numbers, buffers that do what they say, threads, processes, and life without pyFFTW."""

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spectral_mf import InputError, SelfAttention
from spectral_mf.fft import RealTransform, backend

NUMBERS = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import spectral_mf.fft
    import spectral_mf.fft
from spectral_mf import FourierDensity, SelfAttention
import numpy as np
fields = SelfAttention(5.0).grid_fields(256, n_densities=2)
c = np.zeros((2, 129), dtype=complex)
c[0], c[1] = FourierDensity.von_mises(4.0).moments(128), FourierDensity.von_mises(1.0, 2.0).moments(128)
fields.evaluate(c)
transform = spectral_mf.fft.RealTransform(96, 2)
transform.grid[:] = np.sin(np.arange(192.0)).reshape(2, 96)
transform.forward()
print(spectral_mf.fft.backend())
print(len([w for w in caught if issubclass(w.category, RuntimeWarning)]))
print(*(str(w.message) for w in caught))
print(np.concatenate([fields.velocity.ravel(), transform.spectrum.ravel().view(float)]).tobytes().hex())
"""


def in_a_new_process(path=()):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(p) for p in path]))
    result = subprocess.run(
        [sys.executable, "-c", NUMBERS], capture_output=True, text=True, env=environment, timeout=120, check=True
    )
    name, warned, message, data = result.stdout.splitlines()
    return name, int(warned), message, np.frombuffer(bytes.fromhex(data))


@pytest.mark.parametrize("n_points", [2, 16, 96, 250, 1024])
@pytest.mark.parametrize("n_series", [1, 3])
def test_transforms_against_their_definition(n_points, n_series):
    rng = np.random.default_rng([n_points, n_series])
    transform = RealTransform(n_points, n_series)
    values = rng.standard_normal((n_series, n_points))
    turns = np.outer(np.arange(n_points), np.arange(n_points // 2 + 1)) % n_points
    transform.grid[:] = values
    transform.forward()
    exact = values @ np.exp(-2j * np.pi * turns / n_points)
    np.testing.assert_allclose(transform.spectrum, exact, rtol=0, atol=1e-13 * n_points)
    transform.spectrum[:] = exact / n_points
    transform.backward()
    np.testing.assert_allclose(transform.grid, values, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(15, 1), (0, 1), (-2, 1), (16, 0)])
def test_odd_and_empty_grids_are_refused(shape):
    with pytest.raises(InputError, match="give an"):
        RealTransform(*shape)


def test_each_transform_has_its_own_arrays():
    """A second transform of the same size does not write into the first one's result."""
    first, second = RealTransform(64), RealTransform(64)
    first.grid[:] = 1.0
    first.forward()
    kept = first.spectrum.copy()
    second.grid[:] = 5.0
    second.forward()
    np.testing.assert_array_equal(first.spectrum, kept)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_independent_and_work(make):
    one = RealTransform(32, 2)
    two = make(one)
    assert (two.n_points, two.n_series) == (32, 2)
    one.spectrum[:] = 0.0
    two.spectrum[:] = 0.0
    one.spectrum[0, 3], two.spectrum[0, 3] = 1.0, 2.0
    one.backward()
    two.backward()
    np.testing.assert_allclose(two.grid, 2.0 * one.grid, rtol=0, atol=1e-14)
    assert one.grid[0, 0] == pytest.approx(2.0, abs=1e-14)


def test_eight_threads_give_the_serial_results():
    """Planning, executing and dropping plans at the same time, each thread with its own size and beta."""

    def work(i):
        out = []
        for repeat in range(15):
            n = 64 + 32 * ((i + repeat) % 6)
            fields = SelfAttention(1.0 + i).grid_fields(n)
            c = (0.7 ** np.arange(n // 2 + 1) * np.exp(1j * i)).astype(complex)
            c[0] = 1.0
            fields.evaluate(c)
            out.append(fields.velocity.copy())
        return out

    serial = [work(i) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        threaded = list(pool.map(work, range(8)))
    for a, b in zip(serial, threaded, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_two_processes_give_the_same_bits():
    first, second = in_a_new_process(), in_a_new_process()
    assert first[0] == backend()
    assert hashlib.sha256(first[3]).digest() == hashlib.sha256(second[3]).digest()


@pytest.mark.parametrize("error", ["ImportError('no module')", "OSError('libfftw3.so: cannot open')"])
def test_without_pyfftw(tmp_path, error):
    """A broken pyFFTW: the package imports, says so once, and gives the same numbers."""
    (tmp_path / "pyfftw.py").write_text(f"raise {error}\n")
    name, warned, message, values = in_a_new_process([tmp_path])
    assert name == "scipy"
    assert warned == 1
    assert "scipy.fft is used instead" in message
    assert error.split("'")[1] in message
    np.testing.assert_allclose(values, in_a_new_process()[3], rtol=0, atol=1e-12)


def test_a_start_does_not_wait_for_dask_which_can_still_be_imported():
    pytest.importorskip("dask")
    code = (
        "import sys, spectral_mf.fft; assert 'dask' not in sys.modules; import dask.array.fft; "
        "from pyfftw.interfaces import dask_fft; assert callable(dask_fft.fft)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
