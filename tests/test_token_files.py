"""Token files of every kind, as people write them; and each way to get them wrong, in one clear sentence."""

import h5py
import numpy as np
import pytest

from spectral_mf import Atoms, InputError, StorageError
from spectral_mf.token_files import read_tokens

ANGLES = np.array([0.1, -2.0, 7.0])
VECTORS = np.array([[1.0, 0.0], [0.0, 3.0], [-2.0, -2.0]])
DIRECTIONS = np.array([0.0, np.pi / 2, 5 * np.pi / 4])
WEIGHTS = np.array([1.0, 2.0, 5.0])


def write(path, **arrays):
    if path.suffix == ".npy":
        np.save(path, next(iter(arrays.values())))
    elif path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, value in arrays.items():
                file[name] = value
    return path


def refused(path, *parts, kind=InputError):
    """The message is one line, names the file, and says what is wrong."""
    with pytest.raises(kind) as caught:
        read_tokens(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5", ".hdf5"])
def test_angles_and_vectors(tmp_path, suffix):
    angles, weights = read_tokens(write(tmp_path / f"a{suffix}", tokens=ANGLES))
    assert weights is None
    np.testing.assert_array_equal(angles, ANGLES)
    angles, weights = read_tokens(write(tmp_path / f"v{suffix}", tokens=VECTORS))
    assert weights is None
    np.testing.assert_allclose(angles, DIRECTIONS, rtol=0, atol=1e-15)


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
@pytest.mark.parametrize("name", ["angles", "theta", "tokens", "vectors", "my_data"])
def test_names_and_weights(tmp_path, suffix, name):
    angles, weights = read_tokens(write(tmp_path / f"f{suffix}", **{name: VECTORS, "weights": WEIGHTS}))
    np.testing.assert_allclose(angles, DIRECTIONS, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(weights, WEIGHTS)


def test_known_name_wins_over_others(tmp_path):
    angles, _ = read_tokens(write(tmp_path / "f.npz", loss=np.ones(9), angles=ANGLES))
    np.testing.assert_array_equal(angles, ANGLES)


@pytest.mark.parametrize(
    ("text", "angles", "weights"),
    [
        ("0.1\n-2\n7\n", ANGLES, None),
        ("0.1\n-2\n7", ANGLES, None),
        ("\ufeffangle\r\n0.1\r\n-2\r\n7\r\n", ANGLES, None),
        ("# made by hand\nangle,weight\n0.1,1\n-2,2\n7,5\n", ANGLES, WEIGHTS),
        ("angle;weight\n0.1;1\n-2;2\n\n7;5\n", ANGLES, WEIGHTS),
        ("theta weight\n 0.1  1\n-2\t2 # second\n7 5\n", ANGLES, WEIGHTS),
        ("w , Theta\n1, 0.1\n2, -2\n5, 7\n", ANGLES, WEIGHTS),
        ("# angle,weight\n0.1,1\n-2,2\n7,5\n", ANGLES, WEIGHTS),
        (",angle\n0,0.1\n1,-2\n2,7\n", ANGLES, None),
        ("1,0\n0,3\n-2,-2\n", DIRECTIONS, None),
        ("1 0 1\n0 3 2\n-2 -2 5\n", DIRECTIONS, WEIGHTS),
        ("x,y\n1,0\n0,3\n-2,-2\n", DIRECTIONS, None),
        ('"id","y","weight","x"\n1,0,1,1\n2,3,2,0\n3,-2,5,-2\n', DIRECTIONS, WEIGHTS),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".txt"])
def test_text(tmp_path, text, angles, weights, suffix):
    path = tmp_path / f"tokens{suffix}"
    path.write_bytes(text.encode())
    got_angles, got_weights = read_tokens(path)
    np.testing.assert_allclose(got_angles, angles, rtol=0, atol=1e-15)
    if weights is None:
        assert got_weights is None
    else:
        np.testing.assert_array_equal(got_weights, weights)


def test_what_numpy_writes_as_text(tmp_path):
    np.savetxt(tmp_path / "a.txt", np.column_stack([ANGLES, WEIGHTS]), header="angle weight")
    angles, weights = read_tokens(tmp_path / "a.txt")
    np.testing.assert_array_equal(angles, ANGLES)
    np.testing.assert_array_equal(weights, WEIGHTS)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u2", "f2", "f4", ">f8", "f8"])
def test_other_number_types_become_float64(tmp_path, dtype):
    angles, _ = read_tokens(write(tmp_path / "a.npy", tokens=np.array([0, 1, 3], dtype=dtype)))
    assert angles.dtype == np.float64
    assert angles.dtype.isnative
    np.testing.assert_array_equal(angles, [0.0, 1.0, 3.0])


def test_single_precision_vectors_are_normalised_in_double(tmp_path):
    vectors = np.array([[0.6, 0.8], [-0.3, 0.1]], dtype="f4")
    angles, _ = read_tokens(write(tmp_path / "a.npy", tokens=vectors))
    wide = vectors.astype(np.float64)
    np.testing.assert_allclose(angles, np.arctan2(wide[:, 1], wide[:, 0]), rtol=1e-15)


def test_tiny_and_huge_vectors_have_directions(tmp_path):
    angles, _ = read_tokens(write(tmp_path / "a.npy", tokens=np.array([[1e-200, 1e-200], [-1e200, 0.0]])))
    np.testing.assert_allclose(angles, [np.pi / 4, np.pi], rtol=1e-15)


def test_atoms_from_file(tmp_path, monkeypatch):
    folder = tmp_path / "out dir é β"
    folder.mkdir()
    path = write(folder / "tokens.npz", angles=ANGLES, weights=WEIGHTS)
    atoms = Atoms.from_file(str(path))
    np.testing.assert_allclose(atoms.angles, ANGLES % (2 * np.pi), rtol=1e-15)
    np.testing.assert_allclose(atoms.weights, WEIGHTS / 8.0, rtol=1e-15)
    monkeypatch.setenv("HOME", str(folder))
    assert Atoms.from_file("~/tokens.npz").n_atoms == 3


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5"])
@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.empty(0), "no tokens"),
        (np.empty((0, 2)), "no tokens"),
        (np.ones((4, 3)), "(4, 3)"),
        (np.ones((4, 1)), "(4, 1)"),
        (np.ones((2, 2, 2)), "(2, 2, 2)"),
        (np.float64(3.0), "()"),
        (np.array([0.0, 1.0, np.nan]), "token 2 (counted from 0) is nan"),
        (np.array([0.0, np.inf, np.nan]), "token 1 (counted from 0) is inf"),
        (np.array([[1.0, 0.0], [1.0, np.nan]]), "token 1 (counted from 0) is [ 1. nan]"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), "token 1 (counted from 0) is a vector of length zero"),
        (np.array([1.0 + 1.0j, 2.0]), "complex128"),
        (np.array([True, False]), "bool"),
        (np.array([b"a", b"b"]), "not real numbers"),
    ],
)
def test_arrays_that_are_no_tokens(tmp_path, suffix, tokens, message):
    refused(write(tmp_path / f"bad{suffix}", tokens=tokens), message)


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([1.0, -1.0, 1.0]), "weight 1 (counted from 0) is -1"),
        (np.array([1.0, 1.0, np.nan]), "weight 2 (counted from 0) is nan"),
        (np.zeros(3), "all weights are 0"),
        (np.ones(4), "(4,) for 3 tokens"),
        (np.ones((3, 1)), "(3, 1) for 3 tokens"),
        (np.ones(3, dtype=complex), "complex128"),
    ],
)
def test_bad_weights(tmp_path, suffix, weights, message):
    refused(write(tmp_path / f"bad{suffix}", angles=ANGLES, weights=weights), message)


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_which_array_is_meant_has_to_be_clear(tmp_path, suffix):
    refused(write(tmp_path / f"two{suffix}", angles=ANGLES, vectors=VECTORS), "angles, vectors")
    refused(write(tmp_path / f"unnamed{suffix}", a=ANGLES, b=ANGLES), "holds a, b")
    refused(write(tmp_path / f"none{suffix}", weights=WEIGHTS), "holds weights")


def test_empty_hdf5_and_a_run_are_no_token_files(tmp_path):
    refused(write(tmp_path / "nothing.h5"), "no arrays")
    refused(write(tmp_path / "run.h5", theta=ANGLES, moment_real=np.ones((2, 2))), "is a run")
    with h5py.File(tmp_path / "null.h5", "w") as file:
        file["angles"] = h5py.Empty("f8")
    refused(tmp_path / "null.h5", "not real numbers")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no tokens"),
        ("# only\n\n#comments\n", "no tokens"),
        ("angle,weight\n", "no tokens"),
        ("0.1\nabc\n", "line 2: 'abc' is not a number"),
        ("# c\n\n0.1,1\n0.2,\n", "line 4: '' is not a number"),
        ("1,2\n3,4,5\n", "line 2: 3 columns where the first row has 2"),
        ("1 2 3 4\n", "4 columns without names"),
        ("angle,x,y\n1,2,3\n", "name either angle, or x and y"),
        ("x,weight\n1,2\n", "name either angle, or x and y"),
        ("a,b\n1,2\n", "columns a, b"),
        ("angle,theta\n1,2\n", "two columns for the angle"),
        ("angle,weight\n1,2,3\n", "2 names for 3 columns"),
        ("0.1\nnan\n", "the token in line 2 is nan"),
        ("0.1\n-inf\n", "the token in line 2 is -inf"),
        ("# by hand\nangle\n\n0.1\n# cut\nnan # here\n", "the token in line 6 is nan"),
        ("1,0\n0,0\n", "the token in line 2 is a vector of length zero"),
        ("angle,weight\n1,-2\n", "the weight in line 2 is -2"),
        ("1\n1+2j\n", "line 2: '1+2j' is not a number"),
        ("0,5\n0,x\n", "line 2"),
    ],
)
def test_bad_text(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refused(path, message)


def test_text_in_another_encoding(tmp_path):
    path = tmp_path / "utf16.csv"
    path.write_bytes("angle\n0.1\n".encode("utf-16"))
    refused(path, "UTF-8", kind=StorageError)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".txt", ".h5"])
def test_missing_file_and_folder(tmp_path, suffix):
    refused(tmp_path / f"gone{suffix}", "does not exist", kind=StorageError)
    (tmp_path / f"folder{suffix}").mkdir()
    refused(tmp_path / f"folder{suffix}", "is a folder", kind=StorageError)


@pytest.mark.parametrize("name", ["tokens.mat", "tokens", "tokens.npy.bak"])
def test_unknown_kind_lists_the_known_ones(tmp_path, name):
    refused(tmp_path / name, ".npy, .npz, .csv, .txt, .h5", kind=StorageError)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5"])
def test_damaged_files(tmp_path, suffix):
    whole = write(tmp_path / f"whole{suffix}", angles=np.linspace(0.0, 6.0, 2000)).read_bytes()
    for size in (0, 5, 60, len(whole) // 2, len(whole) - 3):
        path = tmp_path / f"cut{size}{suffix}"
        path.write_bytes(whole[:size])
        refused(path, kind=StorageError)
    path = tmp_path / f"other{suffix}"
    path.write_bytes(b"this is something else entirely, long enough for a header" * 20)
    refused(path, kind=StorageError)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5"])
def test_what_is_no_such_file_is_told_without_jargon(tmp_path, suffix):
    for text in ("", "hi\n", "0.1\n0.2\n0.3\n"):
        (tmp_path / f"bad{suffix}").write_text(text)
        refused(tmp_path / f"bad{suffix}", " is not a", kind=StorageError)
    with pytest.raises(StorageError) as caught:
        read_tokens(tmp_path / f"bad{suffix}")
    assert not any(word in str(caught.value) for word in ("magic", "EOF", "signature", "pickle", "Errno"))


def test_an_array_that_is_cut_off_is_told_so(tmp_path):
    whole = write(tmp_path / "whole.npy", tokens=ANGLES).read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-5])
    refused(tmp_path / "cut.npy", "ends early or is damaged; write it again", kind=StorageError)


def test_flipped_byte_in_an_archive(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, angles=np.random.default_rng(0).random(500))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    refused(path, "cannot be read", kind=StorageError)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_pickled_objects_are_not_loaded(tmp_path, suffix):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    path = tmp_path / f"objects{suffix}"
    trap = np.array([Trap(), 1.0], dtype=object)
    np.save(path, trap, allow_pickle=True) if suffix == ".npy" else np.savez(path, angles=trap)
    refused(path, "holds Python objects; save an array of real numbers", kind=StorageError)


@pytest.mark.parametrize("mark", ["", "# "])
def test_columns_of_other_names_are_left_alone_under_a_commented_header_too(tmp_path, mark):
    path = tmp_path / "tokens.txt"
    path.write_text(f"{mark}id theta\n1 0.5\n2 0.6\n")
    np.testing.assert_allclose(Atoms.from_file(path).angles, [0.5, 0.6])
    path.write_text(f"{mark}x y z\n1 0 1\n0 1 3\n")
    atoms = Atoms.from_file(path)
    np.testing.assert_allclose(atoms.angles, [0.0, np.pi / 2])
    np.testing.assert_allclose(atoms.weights, [0.5, 0.5])
