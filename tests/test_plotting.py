"""Pictures: what they show, and that they need no display and change no settings."""

import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from spectral_mf import (
    AttentionHead,
    BrownianPath,
    FourierDensity,
    InputError,
    MultiHeadAttention,
    PairPotential,
    SelfAttention,
    StorageError,
    VectorFields,
    solve,
    solve_common_noise,
)
from spectral_mf.picture_titles import common_noise, model_title
from spectral_mf.plotting import (
    plot_density,
    plot_energy,
    plot_growth_rates,
    plot_moments,
    plot_overview,
    save_figure,
)
from spectral_mf.trajectory import Row, RunInfo, Snapshot, Trajectory

MODEL = SelfAttention(5.0)


@pytest.fixture(scope="module")
def run():
    return solve(MODEL, FourierDensity.from_modes({2: 0.003, 3: 0.01, 4: 0.002j}), 6.0)


def made_of(times, measures, n_cells=128):
    rows = [
        Row.from_snapshot(Snapshot(float(t), measure, "spectral", 64), MODEL, 64, n_cells)
        for t, measure in zip(times, measures, strict=True)
    ]
    return Trajectory(RunInfo(MODEL, {}, 64, n_cells, True, "complete"), rows)


def test_moments_are_drawn_beside_linear_theory(run):
    ax = plot_moments(run, modes=[3]).axes[0]
    solid, dashed = ax.get_lines()
    np.testing.assert_array_equal(solid.get_ydata(), np.abs(run.moments[:, 3]))
    t, theory = dashed.get_data()
    shown = np.isfinite(theory)
    np.testing.assert_allclose(theory[shown], 0.01 * np.exp(MODEL.growth_rate(3) * t[shown]), rtol=1e-12)
    assert theory[shown].max() <= 1.0
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel() == "time t"


def test_by_default_the_modes_that_grow_fastest_and_are_there(run):
    labels = [text.get_text() for text in plot_moments(run).axes[0].get_legend().get_texts()]
    assert "k = 3" in labels
    assert len(labels) == 6
    three = solve(MODEL, FourierDensity.from_modes({3: 0.01}), 2.0)
    labels = [text.get_text() for text in plot_moments(three).axes[0].get_legend().get_texts()]
    assert all(int(label.split()[-1]) % 3 == 0 for label in labels)


def test_density_has_time_across_and_angle_up(run):
    figure = plot_density(run)
    ax, bar = figure.axes
    mesh = ax.collections[0]
    assert mesh.get_array().shape == (run.cells.shape[1], run.cells.shape[0])
    np.testing.assert_allclose(mesh.get_array()[:, 0], 2 * np.pi * run.cells[0])
    assert ax.get_xlim() == (0.0, 6.0)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "π/2", "π", "3π/2"]
    assert bar.get_ylabel() == "density / uniform"


def test_growth_rates_mark_the_dominant_mode_and_a_tie():
    texts = [text.get_text() for text in plot_growth_rates(MODEL).axes[0].texts]
    assert any(text.startswith("k = 3,") for text in texts)
    from spectral_mf import theory

    tie = plot_growth_rates(SelfAttention(float(theory.threshold(3)))).axes[0]
    assert any(text.get_text().startswith("k = 3 and 4") for text in tie.texts)
    stable = plot_growth_rates(SelfAttention(1.0, diffusion=2.0)).axes[0]
    assert any("stable" in text.get_text() for text in stable.texts)


def test_energy_runs_from_uniform_to_one_point(run):
    line = plot_energy(run).axes[0].get_lines()[0]
    share = (run.energy - 2.72398718236044469) / (14.8413159102576603 - 2.72398718236044469)
    np.testing.assert_allclose(line.get_ydata(), share, rtol=1e-9)


@pytest.mark.parametrize("kind", [plot_overview, plot_density, plot_moments, plot_energy])
def test_corner_cases_are_drawn(kind):
    uniform = FourierDensity.uniform()
    sharp = FourierDensity.von_mises(2000.0)
    for trajectory in (
        made_of([0.0], [uniform]),
        made_of([0.0, 1.0], [uniform, uniform]),
        made_of([0.0, 1e-3, 1.0, 1e6], [uniform, uniform, sharp, sharp]),
        made_of([0.0, 1.0], [FourierDensity.from_modes({1: 1e-14}), FourierDensity.from_modes({1: 1e-13})]),
    ):
        assert isinstance(kind(trajectory), Figure)


def test_zeros_and_rounding_below_zero_are_shown_on_logarithmic_colours(tmp_path):
    trajectory = made_of([0.0, 1.0], [FourierDensity.uniform(), FourierDensity.von_mises(50.0)])
    trajectory.cells[1, :5] = -1e-12
    trajectory.cells[1, 5:9] = 0.0
    assert save_figure(plot_density(trajectory), tmp_path / "density.png").stat().st_size > 5000


def test_very_long_times_get_a_logarithmic_axis():
    times = np.geomspace(1e-2, 1e6, 30)
    trajectory = made_of(times, [FourierDensity.von_mises(1.0)] * 30)
    assert plot_density(trajectory).axes[0].get_xscale() == "log"
    assert plot_density(made_of(times[:4], [FourierDensity.von_mises(1.0)] * 4)).axes[0].get_xscale() == "linear"


def test_many_rows_are_thinned():
    trajectory = made_of(np.arange(4000.0), [FourierDensity.von_mises(1.0)] * 4000, n_cells=64)
    mesh = plot_density(trajectory).axes[0].collections[0]
    assert mesh.get_array().shape[1] <= 1500


def test_the_legend_lies_beside_the_curves(run):
    for figure in (plot_moments(run), plot_overview(run)):
        ax = next(ax for ax in figure.axes if ax.get_legend() is not None)
        figure.canvas.draw()
        legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.x0 >= frame.x1
        assert legend.x1 <= figure.bbox.x1


def test_labels_are_no_longer_than_their_axes(run):
    figure = plot_overview(run)
    figure.canvas.draw()
    for ax in figure.axes[:4]:
        assert ax.yaxis.label.get_window_extent().height <= ax.get_window_extent().height


def test_every_picture_names_its_model(run):
    for figure in (plot_overview(run), plot_density(run), plot_moments(run), plot_energy(run)):
        assert figure.get_suptitle() == "SA, β = 5, t = 0 to 6 (spectral)"
    assert plot_growth_rates(SelfAttention(7.0, diffusion=0.1)).get_suptitle() == "SA, β = 7, κ = 0.1"


def test_drawing_into_given_axes():
    figure = Figure()
    ax = figure.subplots()
    assert plot_growth_rates(MODEL, ax=ax) is figure


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_saving(tmp_path, suffix):
    path = save_figure(plot_growth_rates(MODEL), tmp_path / f"rates β{suffix}")
    assert path.stat().st_size > 2000
    assert sorted(tmp_path.iterdir()) == [path]


def test_saving_is_refused_at_the_door(tmp_path):
    figure = plot_growth_rates(MODEL)
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        save_figure(figure, tmp_path / "rates.mp4")
    with pytest.raises(StorageError, match="does not exist"):
        save_figure(figure, tmp_path / "missing" / "rates.png")
    (tmp_path / "rates.png").write_bytes(b"precious")
    with pytest.raises(StorageError, match="exists; choose another name, or pass overwrite=True"):
        save_figure(figure, tmp_path / "rates.png", overwrite=False)


def test_a_mode_that_is_not_stored(run):
    with pytest.raises(InputError, match="mode 400 is not stored"):
        plot_moments(run, modes=[400])


def test_settings_stay_as_they_are(run):
    before = dict(matplotlib.rcParams)
    plot_overview(run)
    assert dict(matplotlib.rcParams) == before


def test_no_display_is_needed_and_the_backend_is_the_users(tmp_path):
    code = (
        "import sys\n"
        "from spectral_mf.plotting import plot_growth_rates, save_figure\n"
        "from spectral_mf import SelfAttention\n"
        "import matplotlib\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "save_figure(plot_growth_rates(SelfAttention(5.0)), sys.argv[1])\n"
        "assert matplotlib.rcParams._get_backend_or_none() in (None, 'tkagg', 'TkAgg')\n"
    )
    environment = {"PATH": "", "MPLBACKEND": "TkAgg", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rates.png")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def pixels_of(figure, ax, dpi):
    """Colours of the pixels within axes, shape (rows from the bottom, columns, 4), as the picture is written."""
    figure.set_dpi(dpi)
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba()) / 255.0
    box = ax.get_window_extent()
    return image[::-1][round(box.y0) : round(box.y1), round(box.x0) : round(box.x1)]


@pytest.mark.parametrize("dpi", [25, 50, 77, 100, 180])
def test_a_spike_one_cell_wide_is_seen_at_every_size(dpi):
    from matplotlib import colormaps

    uniform, n_cells = FourierDensity.uniform(), 512
    trajectory = made_of(np.linspace(0.0, 1.0, 41), [uniform] * 41, n_cells=n_cells)
    trajectory.cells[:, :] = 1e-6
    at = np.array([0, 11, 100, 267, 390, 511])
    trajectory.cells[:, at] = n_cells / (2 * np.pi * at.size)
    for figure in (plot_density(trajectory), plot_overview(trajectory)):
        ax = figure.axes[0]
        image = pixels_of(figure, ax, dpi)
        bright = np.abs(image[:, image.shape[1] // 2] - colormaps["viridis"](1.0)).max(axis=1) < 0.02
        rows = np.flatnonzero(bright)
        expected = ((at + 0.5) / n_cells * image.shape[0]).astype(int)
        for row in expected:
            assert np.abs(rows - row).min() <= 1
        assert bright.sum() <= 4 * at.size  # and the background stays what it is


def test_a_spike_one_row_long_is_seen():
    uniform = FourierDensity.uniform()
    trajectory = made_of(10.0 + np.arange(4000.0), [uniform] * 4000, n_cells=64)
    trajectory.cells[:, :] = 1e-6
    trajectory.cells[[1001, 2002, 3456], 20] = 64 / (2 * np.pi)
    figure = plot_density(trajectory)
    image = pixels_of(figure, figure.axes[0], 60)
    bright = image[int(20.5 / 64 * image.shape[0]), :, 1] > 0.8  # green in viridis: 0.9 at the top, 0.0 at the bottom
    columns = np.flatnonzero(bright)
    for row in (1001, 2002, 3456):
        assert np.abs(columns - row / 4000 * image.shape[1]).min() <= 2
    assert bright.sum() <= 9


@pytest.fixture(scope="module")
def two_ends():
    """A cluster at either end of an eigendirection: no growth rates about the uniform density, and no staircase."""
    matrix = [[1.0, 0.2], [0.2, -0.5]]
    model = MultiHeadAttention([AttentionHead(matrix, matrix, 2.0)])
    return solve(model, FourierDensity.from_modes({1: 0.1, 2: -0.05j}), 20.0, rtol=1e-6)


def spectral_mf(folder, *arguments, **environment):
    """Run the command line as a process of its own."""
    code = "from spectral_mf.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_of_several_pictures_all_are_drawn_or_none(two_ends, tmp_path):
    two_ends.save(tmp_path / "run.h5")
    done = spectral_mf(tmp_path, "plot", "run.h5", *(f"--kind={kind}" for kind in ("density", "staircase", "energy")))
    assert (done.returncode, done.stdout) == (2, "")
    assert "the energy staircase is known for SelfAttention" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]
    (tmp_path / "run.energy.png").mkdir()  # a place that is taken is seen in time too
    done = spectral_mf(tmp_path, "plot", "run.h5", "--kind=density", "--kind=energy")
    assert (done.returncode, done.stdout) == (2, "")
    assert not (tmp_path / "run.density.png").exists()


def test_the_command_line_draws_whatever_the_backend_of_the_user(two_ends, tmp_path):
    two_ends.save(tmp_path / "run.h5")
    done = spectral_mf(tmp_path, "plot", "run.h5", MPLBACKEND="nonsense")
    assert (done.returncode, done.stdout, done.stderr) == (0, "run.png\n", "")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_with_matrices_is_named_with_all_of_them(two_ends):
    assert plot_energy(two_ends).get_suptitle() == (
        "SA, β = 2, t = 0 to 20 (spectral → characteristics)\nB = V = [[1, 0.2], [0.2, -0.5]]"
    )
    heads = [AttentionHead(np.eye(2), -np.eye(2), beta) for beta in (1.0, 2.0, 3.0, 4.0)]
    lines = model_title(MultiHeadAttention(heads, "none", 0.1)).split("\n")
    assert lines == ["USA, 4 heads, κ = 0.1", *(f"head {i}: β = {i}, B = I, V = -I" for i in (1, 2, 3)), "and 1 more"]
    assert model_title(PairPotential.kuramoto(2.0)) == "PairPotential, $W_{1}$ = 1"
    assert model_title(PairPotential.hegselmann_krause(0.8, kept_modes=16)) == "PairPotential, W of 16 modes"


def test_a_long_heading_stays_within_its_figure():
    figure = plot_growth_rates(MultiHeadAttention([AttentionHead([[1.25, 0], [0, 1.25]], [[-2.5, 0], [0, -2.5]], 2.0)]))
    assert figure.get_suptitle() == "SA, β = 2\nB = 1.25 I, V = -2.5 I"
    matrix = 0.12345 * np.arange(1.0, 5.0).reshape(2, 2)
    figure = plot_growth_rates(MultiHeadAttention([AttentionHead(matrix, -matrix.T, 12.5)], diffusion=0.123))
    figure.canvas.draw()
    assert figure.texts[0].get_window_extent().x1 <= figure.bbox.x1


def test_panels_of_a_model_without_growth_rates(two_ends):
    ax = plot_moments(two_ends).axes[0]
    assert ax.get_title(loc="left") == "Moments"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"k = {k}" for k in range(1, 7)]
    assert len(ax.get_lines()) == 6
    panels = {ax.get_title(loc="left"): ax for ax in plot_overview(two_ends).axes}
    assert list(panels)[:4] == ["Density", "Moments", "Density at t = 20 (grey: at t = 0)", "Energy"]
    first, last = (patch.get_data() for patch in panels["Density at t = 20 (grey: at t = 0)"].patches)
    np.testing.assert_allclose(first.values[:-1], 2 * np.pi * two_ends.cells[0])
    spikes = np.flatnonzero(last.values > 100.0)
    assert two_ends.theta[spikes] == pytest.approx([0.13499031, 3.27658296], abs=1e-8)
    np.testing.assert_allclose(0.5 * (last.edges[spikes] + last.edges[spikes + 1]), two_ends.theta[spikes])


def test_titles_of_panels_say_what_is_drawn(run):
    assert plot_moments(run).axes[0].get_title(loc="left") == "Moments (solid) and linear theory (dashed)"
    none = plot_moments(run, modes=[7]).axes[0]  # a mode that is 0 at first has no line
    assert none.get_title(loc="left") == "Moments"


def test_common_noise_is_named_and_has_no_linear_theory():
    start, path = FourierDensity.from_modes({1: 0.02, 2: 0.01}), BrownianPath.draw(2, 0.5, 8, seed=1)
    model = SelfAttention(4.0, diffusion=0.1)
    trajectory = solve_common_noise(model, start, VectorFields.planar(0.8), path, [0.0, 0.25, 0.5], rtol=1e-6)
    figure = plot_overview(trajectory)
    assert figure.get_suptitle() == "SA, β = 4, κ = 0.1, common noise σ = 0.8, t = 0 to 0.5 (spectral)"
    assert [ax.get_title(loc="left") for ax in figure.axes[1:3]] == ["Moments", "Density at t = 0.5 (grey: at t = 0)"]
    path = BrownianPath.draw(1, 0.5, 8, seed=1)
    turned = solve_common_noise(model, start, VectorFields.rotation(0.3), path, [0.0, 0.5])
    assert common_noise(turned) == pytest.approx(0.3, rel=1e-14, abs=0.0)
