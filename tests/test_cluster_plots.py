"""Pictures of the collapse: what is drawn is what was found, nothing crosses the seam, and all names lead to them."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from typer.testing import CliRunner

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, positional_plots, solve
from spectral_mf.characteristic_lines import characteristic_lines
from spectral_mf.cli.app import app
from spectral_mf.cli.plot import Kind
from spectral_mf.cluster_plots import plot_characteristics, plot_cluster_tree, plot_energy_staircase
from spectral_mf.diagnostics import clusters, energy_staircase
from spectral_mf.energy_staircase import EnergyJump
from spectral_mf.pictures import PICTURES
from spectral_mf.plotting import save_figure

TWO_PI = 2 * np.pi
MODEL = SelfAttention(5.0)


@pytest.fixture(scope="module")
def run():
    start = FourierDensity.from_modes({1: 0.004 + 0.001j, 2: 0.003 - 0.002j, 3: 0.009, 4: -0.01 + 0.005j})
    return solve(MODEL, start, np.concatenate([[0.0], np.geomspace(0.5, 1e3, 80)]))


def apart(a, b):
    return np.abs((np.asarray(a) - b + np.pi) % TWO_PI - np.pi)


def drawn_tree(figure):
    """Segments of the tree that lie within the axes, with their widths."""
    for collection in figure.axes[0].collections:
        if isinstance(collection, LineCollection):
            yield collection.get_segments(), np.atleast_1d(collection.get_linewidths())


def test_characteristics_of_the_kuramoto_flow():
    # A Poisson-kernel density stays one; its flow is a Moebius map of the circle, tan(x/2) -> const tan(x/2).
    r0 = 0.3
    start = FourierDensity(r0 ** np.arange(60.0))
    run = solve(SelfAttention(0.0), start, np.linspace(0.0, 4.0, 41))
    lines = characteristic_lines(run, 25)

    def r_at(t):  # r' = r (1 - r^2) / 2
        s = r0**2 / (1 - r0**2) * np.exp(t)
        return np.sqrt(s / (1 + s))

    def stretch(r):  # tan(x/2) of a uniform label is multiplied by (1 - r) / (1 + r)
        return (1 - r) / (1 + r)

    factor = stretch(np.array([r_at(t) for t in run.t])) / stretch(r0)
    exact = 2 * np.arctan(np.tan(lines[:, :1] / 2) * factor)
    assert apart(lines, exact).max() < 1e-6


def test_characteristics_carry_equal_shares_of_mass(run):
    lines = characteristic_lines(run, 10)
    assert lines.shape == (10, len(run))
    flow_map = int(np.argmax(run.method == "characteristics"))
    for row in (0, flow_map - 1, flow_map, flow_map + 2):
        measure = run.measure(row)
        cells = 1 << 14
        mass = np.append(0.0, np.cumsum(measure.cell_means(cells))) * TWO_PI / cells
        turn = np.floor((lines[:, row] + np.pi / cells) / TWO_PI)
        below = turn + np.interp(lines[:, row] - TWO_PI * turn, (np.arange(cells + 1) - 0.5) * TWO_PI / cells, mass)
        np.testing.assert_allclose(np.diff(below), 0.1, atol=2e-4)
        if row == 0:
            np.testing.assert_allclose(below, 0.05 + 0.1 * np.arange(10), atol=2e-4)


def test_characteristics_end_in_the_clusters(run):
    lines = characteristic_lines(run, 40)
    assert np.abs(np.diff(lines, axis=1)).max() < np.pi
    last = clusters(run).rows[-1]
    share = [(apart(lines[:, -1], position) < 1e-3).mean() for position in last.positions]
    np.testing.assert_allclose(share, last.masses, atol=1 / 40)


def test_characteristics_of_atoms_are_the_atoms():
    run = solve(MODEL, Atoms([0.2, 3.0, 6.2]), np.linspace(0.0, 3.0, 16))
    lines = characteristic_lines(run)
    assert lines.shape == (3, 16)
    for row in range(16):
        if run.measure(row).n_atoms == 3:
            np.testing.assert_allclose(np.sort(lines[:, row] % TWO_PI), np.sort(run.measure(row).angles), atol=1e-12)


def test_lines_are_drawn_over_the_density_and_leave_its_axes(run):
    figure = plot_characteristics(run, n_lines=12)
    ax = figure.axes[0]
    lines = characteristic_lines(run, 12)
    assert len(ax.get_lines()) >= 12
    for line in ax.get_lines():
        t, angle = line.get_data()
        np.testing.assert_array_equal(t, run.t)
        assert (apart(lines, angle).max(axis=1) < 1e-12).any()
    low, high = ax.get_ylim()
    assert high - low == pytest.approx(TWO_PI)
    assert len(ax.collections) == 1


def test_tree_has_the_clusters_with_their_masses(run):
    history = clusters(run)
    figure = plot_cluster_tree(run)
    assert figure.axes[0].get_xscale() == "log"
    assert figure.axes[0].get_ylim() == (0.0, TWO_PI)
    last = history.rows[-1]
    texts = sorted(text.get_text() for text in figure.axes[0].texts)
    assert texts == sorted(f"{mass:.2g}" for mass in last.masses)
    ends = {}
    for segments, widths in drawn_tree(figure):
        (_, angle), width = segments[-1][-1], widths[-1]
        if segments[-1][-1][0] == run.t[-1]:
            ends[round(float(angle % TWO_PI), 9)] = float(width)
    for position, mass in zip(last.positions, last.masses, strict=True):
        assert ends[round(float(position), 9)] / sum(ends.values()) == pytest.approx(mass, rel=1e-9, abs=0.0)


def test_merging_lines_meet_at_the_time_of_the_merger(run):
    history = clusters(run)
    merger = history.mergers[-1]
    meeting = []
    for segments, _ in drawn_tree(plot_cluster_tree(run)):
        points = np.concatenate([segment for segment in segments])
        meeting += [float(angle) for t, angle in points if t == merger.t]
    place = history.rows[int(np.searchsorted(run.t, merger.interval[1]))].positions
    assert len(set(np.round(meeting, 12))) == 1
    assert apart(place, meeting[0]).min() < 1e-12
    assert len(meeting) >= 3  # the end of one line, and the middle of another


def test_nothing_is_drawn_across_the_seam():
    run = solve(MODEL, Atoms([TWO_PI - 0.5, 0.3, 0.9], [1, 2, 2]), np.linspace(0.0, 5.0, 60))
    assert np.abs(np.diff(clusters(run).tracks[-1].positions)).max() > 6.0  # this one passes through 0
    for figure in (plot_cluster_tree(run), plot_characteristics(run)):
        paths = [segment for segments, _ in drawn_tree(figure) for segment in segments]
        paths += [np.stack(line.get_data(), axis=1) for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2]
        assert paths
        assert max(np.abs(np.diff(path[:, 1])).max() for path in paths) < 0.5


def test_a_band_about_the_seam_is_seen_on_both_sides_of_it():
    run = solve(MODEL, FourierDensity.von_mises(1.0, 0.1), np.linspace(0.0, 3.0, 61), rtol=1e-6)
    vertices = [
        path.vertices
        for collection in plot_cluster_tree(run).axes[0].collections
        if not isinstance(collection, LineCollection)
        for path in collection.get_paths()
    ]
    angles = np.concatenate(vertices)[:, 1]
    assert ((angles > 0.2) & (angles < 1.0)).any()
    assert ((angles > TWO_PI - 0.8) & (angles < TWO_PI - 0.1)).any()


def test_staircase_over_both_clocks(run):
    steps = energy_staircase(run)
    left, right = plot_energy_staircase(run).axes
    np.testing.assert_array_equal(left.get_lines()[0].get_ydata(), steps.fine.share)
    known = np.isfinite(steps.fine.clock)
    curve = next(line for line in right.get_lines() if len(line.get_xdata()) > 2)
    np.testing.assert_array_equal(curve.get_xdata(), steps.fine.clock[known])
    assert left.get_xscale() == "log"
    assert [text.get_text() for text in left.texts] == [f"t = {jump.t:.4g}" for jump in steps.jumps]
    assert [text.get_text() for text in right.texts] == [f"t = {j.t:.4g}" for j in steps.jumps if np.isfinite(j.clock)]
    assert [text.xy[0] for text in right.texts] == [jump.clock for jump in steps.jumps if np.isfinite(jump.clock)]
    assert right.texts
    assert left.get_ylim()[1] > steps.share.max()


def test_labels_of_jumps_do_not_overlap():
    angles = [0.0, 0.9, 1.85, 3.0, 4.2]
    run = solve(SelfAttention(20.0), Atoms(angles), np.concatenate([[0.0], np.geomspace(1.0, 1e9, 100)]))
    steps = energy_staircase(run)
    assert len(steps.jumps) >= 3
    ax = plot_energy_staircase(run).axes[0]
    boxes = sorted(text.get_window_extent().x0 for text in ax.texts)
    assert np.diff(boxes).min() > ax.texts[0].get_window_extent().width


def test_labels_on_linear_time_are_left_out_where_jumps_are_close():
    run = solve(MODEL, Atoms([0.2, 3.0]), np.linspace(0.0, 30.0, 31))
    jumps = tuple(EnergyJump(t, (t, t), np.nan, 0.1, 0.2) for t in (0.4, 10.0, 10.4, 20.0))
    figure = plot_energy_staircase(run, staircase=replace(energy_staircase(run), jumps=jumps))
    assert [text.get_text() for text in figure.axes[0].texts] == ["t = 0.4", "t = 10", "t = 20"]
    assert all(np.isfinite(line.get_xdata()).all() for line in figure.axes[1].get_lines())  # no line without a clock


def test_time_is_logarithmic_over_more_than_three_decades_in_every_picture(run, checkout):
    page = (checkout / "docs" / "pictures.md").read_text(encoding="utf-8")
    assert "Time is logarithmic where the output times span more than three decades." in page
    short = solve(MODEL, Atoms([0.2, 1.5, 3.0, 4.0]), np.linspace(0.0, 30.0, 101))  # two and a half
    for kind in ("overview", "density", "moments", "energy", "characteristics", "clusters", "staircase"):
        assert run.plot(kind).axes[0].get_xscale() == "log"
        ax = short.plot(kind).axes[0]
        assert (ax.get_xscale(), ax.get_xlim()) == ("linear", (0.0, 30.0))


def lines_drawn(figure):
    """Points, widths and colours of each line of the tree."""
    for collection in figure.axes[0].collections:
        if isinstance(collection, LineCollection):
            yield from zip(collection.get_segments(), collection.get_linewidths(), collection.get_colors(), strict=True)


def test_while_clusters_form_their_lines_are_pale_and_as_thick_as_later(run):
    history = clusters(run)
    formed = history.t[history.first_formed]
    figure = plot_cluster_tree(run)
    assert figure.get_suptitle() == "SA, β = 5, t = 0 to 1000 (spectral → characteristics → atoms)"
    forming = [line for line in lines_drawn(figure) if line[0][0][0] < formed]
    later = [line for line in lines_drawn(figure) if line[0][0][0] >= formed]
    assert len(forming) >= 3
    assert min(colour[:3].mean() for _, _, colour in forming) > 0.6  # pale
    assert max(colour[:3].mean() for _, _, colour in later) < 0.6
    for points, width, _ in forming:
        if points[-1][0] == formed:
            (next_one,) = [line for line in later if (line[0][0] == points[-1]).all()]
            assert width == pytest.approx(next_one[1], rel=0.04)
    for collection in figure.axes[0].collections:
        if not isinstance(collection, LineCollection):
            heights = [np.ptp(path.vertices[:, 1]) for path in collection.get_paths() if len(path.vertices)]
            assert max(heights, default=0.0) < 3.0


def test_a_line_changes_its_width_only_where_mass_changes(run):
    merger = clusters(run).mergers[-1]
    formed = clusters(run).t[clusters(run).first_formed]
    later = [line for line in lines_drawn(plot_cluster_tree(run)) if line[0][0][0] >= formed]
    assert len(later) == 4  # one each until the merger or the end, and one of both together
    absorbed, into = (clusters(run).tracks[number] for number in (merger.absorbed, merger.into))
    before = sorted(width for points, width, _ in later if points[-1][0] == merger.t)
    (after,) = [width for points, width, _ in later if points[0][0] == merger.t]
    assert sum(before) == pytest.approx(after, rel=1e-3)
    assert before[0] / after == pytest.approx(absorbed.masses[-1] / into.masses[-1], rel=1e-3)


def test_lines_do_not_leap_while_clusters_form():
    start = FourierDensity.white_noise(0.3, 200, seed=1)
    run = solve(SelfAttention(10.0), start, np.linspace(0.0, 10.0, 101), rtol=1e-6)
    leaps = [np.abs(np.diff(path[:, 1])).max() for path, _, _ in lines_drawn(plot_cluster_tree(run))]
    assert len(leaps) >= 8
    assert max(leaps) < 0.2
    broad = solve(SelfAttention(2.0, diffusion=0.2), start, np.linspace(0.0, 60.0, 121), rtol=1e-6)
    assert clusters(broad).first_formed == len(broad)
    assert len(list(lines_drawn(plot_cluster_tree(broad)))) > 0


def test_one_atom_is_drawn_as_one_atom():
    run = solve(MODEL, Atoms([1.0]), [0.0, 1.0, 5.0])
    figure = run.plot("staircase")
    assert figure.get_suptitle() == "SA, β = 5, t = 0 to 5 (atoms)"
    right = figure.axes[1]
    assert [text.get_text() for text in right.texts] == ["the clock stands still: no pair is left to merge"]
    assert run.plot("clusters").axes[0].get_title(loc="left") == "Clusters (numbers: mass); 0 mergers"


def test_why_a_picture_cannot_be_made():
    noisy = solve(SelfAttention(5.0, diffusion=0.01), FourierDensity.from_modes({1: 0.1}), 2.0)
    with pytest.raises(InputError, match="with diffusion mass does not move along characteristics; draw the density"):
        noisy.plot("characteristics")
    assert "with diffusion" in noisy.plot("staircase").axes[1].texts[0].get_text()
    early = solve(MODEL, FourierDensity.uniform(), 1.0)
    with pytest.raises(
        InputError, match="no row of this run has a cluster, so there is no tree; solve to a later time"
    ):
        early.plot("clusters")
    assert "no row has" in early.plot("staircase").axes[1].texts[0].get_text()
    with pytest.raises(InputError, match="there is no picture 'tree'; choose one of overview, density"):
        early.plot("tree")
    with pytest.raises(InputError, match="n_lines = 0 is not allowed"):
        plot_characteristics(early, n_lines=0)


@pytest.mark.parametrize("kind", ["characteristics", "clusters", "staircase"])
def test_corner_cases_are_drawn(kind, tmp_path):
    for run in (
        solve(MODEL, Atoms([1.0]), [0.0]),
        solve(MODEL, Atoms([1.0]), [0.0, 1.0]),
        solve(MODEL, Atoms(np.arange(60.0)), [0.0, 1e-3, 1.0, 1e5]),
        solve(MODEL, FourierDensity.from_modes({3: 0.05}), [0.0, 20.0, 1e4]),
    ):
        figure = run.plot(kind)
        assert isinstance(figure, Figure)
        assert save_figure(figure, tmp_path / "picture.png").stat().st_size > 5000


def test_every_picture_has_a_name_on_the_command_line_and_in_its_help(tmp_path):
    assert [kind.value for kind in Kind] == list(PICTURES | positional_plots.PICTURES)
    text = CliRunner().invoke(app, ["plot", "--help"], env={"COLUMNS": "200"}).output
    assert all(name in text for name in Kind)
    file = solve(MODEL, Atoms([1.0, 3.0]), [0.0, 1.0, 500.0]).save(tmp_path / "run.h5")
    for kind in ("characteristics", "clusters", "staircase"):
        result = CliRunner().invoke(app, ["plot", str(file), "--kind", kind])
        assert result.exit_code == 0, result.output
        assert (tmp_path / f"run.{kind}.png").stat().st_size > 5000
