"""From a log of nccl-tests to a profile, and what a run makes of it."""

from dataclasses import replace

import pytest

import simperf
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.importers import import_file
from simperf.calibrate.validate import validate
from simperf.cli import main
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.study.virtual import resources, speed_up
from tests.calibrate.nccl_logs import nccl_log
from tests.calibrate.synthetic import write_profile

SIZES = [2**power for power in range(3, 31)]


def times(ranks=8):
    """A machine of no catalogue: latencies, a jump in the middle, and a rate."""
    return {size: (3e-5 if size < 2**20 else 5e-5) + 2 * (ranks - 1) / ranks * size / 1.7e11 for size in SIZES}


def scenario(profile, program, machine="dgx-a100"):
    return simperf.make_scenario(
        {"machine": {"use": machine}, "calibration": {"use": str(profile)}, "program": program}
    )


def of_bucket(profile, nbytes, *, gpus=8, machine="dgx-a100", **more):
    """Training whose only bucket has so many bytes, after a backward pass."""
    given = {"layers": 1, "weights": f"{nbytes} B", "bucket": f"{nbytes} B", "first_bucket": f"{nbytes} B", "steps": 1}
    program = {"use": "train", "gpus": gpus, "batch": gpus, "overlap": False, **given, **more}
    return simperf.run(scenario(profile, program, machine)).metrics["exposed communication"].value


def of_program(profile, nbytes, *, gpus=8, machine="dgx-a100", **more):
    return simperf.run(scenario(profile, {"use": "all-reduce", "gpus": gpus, "nbytes": f"{nbytes} B", **more}, machine))


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "all_reduce.log"
    file.write_text(nccl_log(times(), 8))
    return file


@pytest.fixture
def profile(log, tmp_path, capsys):
    """As the documentation has it: two commands."""
    data, profile = str(tmp_path / "data.json"), tmp_path / "mine.toml"
    assert main(["calibrate", "import", str(log), "-o", data]) == 0
    assert main(["calibrate", "fit", data, "-o", str(profile)]) == 0
    capsys.readouterr()
    return profile


def test_runs_and_training_take_what_the_log_says(profile):
    for nbytes, time in times().items():
        found = of_program(profile, nbytes)
        assert found.time == pytest.approx(time, rel=0.02)
        assert "collectives by NCCL" in found.sources["profile mine"]
        if nbytes >= 2**16:
            assert of_bucket(profile, nbytes) == pytest.approx(found.time, rel=1e-9)


def test_without_the_profile_it_is_another_time(profile):
    with_it = of_program(profile, 2**28)
    data = {key: value for key, value in with_it.scenario.items() if key != "calibration"}
    without = simperf.run(simperf.make_scenario(data))
    assert abs(without.time / with_it.time - 1) > 0.1
    assert without.notes == with_it.notes, "NCCL chooses the same"


def test_between_sizes_and_beyond_them(profile):
    first, last = SIZES[0], SIZES[-1]
    between = of_program(profile, 3 * 2**26).time
    assert times()[2**27] < between < times()[2**28]
    plain = {size: _plain(size) for size in (4, first, last, 4 * last)}
    assert of_program(profile, 4).time / plain[4] == pytest.approx(times()[first] / plain[first], rel=5e-3)
    assert of_program(profile, 4 * last).time / plain[4 * last] == pytest.approx(times()[last] / plain[last], rel=5e-3)


def _plain(nbytes):
    data = {"machine": {"use": "dgx-a100"}, "program": {"use": "all-reduce", "nbytes": f"{nbytes} B"}}
    return simperf.run(simperf.make_scenario(data)).time


@pytest.mark.parametrize(
    ("program", "read"),
    [
        ({"use": "all-reduce", "gpus": 4}, "all-reduce of 8 GPUs"),
        ({"use": "all-reduce", "algorithm": "ring"}, 'algorithm = "nccl"'),
        ({"use": "train", "gpus": 1, "batch": 8}, "collectives by NCCL"),
        ({"use": "sends"}, "collectives by NCCL"),
    ],
)
def test_it_is_refused_where_nothing_takes_it(profile, program, read):
    with pytest.raises(InputError) as caught:
        simperf.run(scenario(profile, program))
    (problem,) = caught.value.problems
    assert problem.file == str(profile)
    assert read in problem.expected


def test_two_at_once_share_the_links(profile):
    alone = of_program(profile, 2**28).time
    both = of_program(profile, 2**28, together=2).time
    assert 1.5 * alone < both < 2.01 * alone


def test_everything_twice_as_fast_takes_half_the_time(profile):
    """What a log says is of the machine as it is: one that is made faster is faster."""
    one = scenario(profile, {"use": "all-reduce", "algorithm": "nccl", "nbytes": "64 MiB"})
    names = [resource.name for resource in resources(one)]
    base = simperf.run(one).time
    assert simperf.run(speed_up(one, dict.fromkeys(names, 2.0))).time == pytest.approx(base / 2, rel=1e-9)
    (link,) = [name for name in names if name.startswith("nvlink")]
    assert base / 2 < simperf.run(speed_up(one, {link: 2.0})).time < base


def test_servers_are_told_apart(tmp_path):
    """Sixteen GPUs in two servers say nothing of sixteen in one."""
    file = tmp_path / "two.log"
    file.write_text(nccl_log(times(16), 16, hosts=2))
    dataset = import_file(str(file)).dataset
    assert {(point.at["servers"], point.at["launches"]) for point in dataset} == {(2, 8)}
    profile = tmp_path / "two.toml"
    write_profile(profile, fit_dataset(dataset))
    cluster = {"server": "dgx-a100", "count": 2, "fabric": {"type": "star", "link": "infiniband-hdr"}}
    data = {"calibration": {"use": str(profile)}, "program": {"use": "all-reduce", "nbytes": "1 MiB"}}
    found = simperf.run(simperf.make_scenario({"machine": cluster, **data}))
    assert found.time == pytest.approx(times(16)[2**20], rel=0.02)
    with pytest.raises(InputError, match="all-reduce of 16 GPUs in 2 servers"):
        simperf.run(simperf.make_scenario({"machine": {"use": "dgx-2"}, **data}))


def test_validation_says_the_same(profile, log):
    found = validate(Catalog.load().profile(str(profile)), import_file(str(log)).dataset)
    assert len(found.points) == len(SIZES)
    assert max(abs(point.error) for point in found.points) < 0.01


def test_several_logs_say_how_sure_the_times_are(tmp_path):
    first, second = (import_file(str(_write(tmp_path, index, scale))).dataset for index, scale in enumerate((1.0, 1.1)))
    pooled = replace(first, measurements=tuple(_pooled(first, second)))
    found = fit_dataset(pooled)["nccl.all-reduce.n8.s1"].fit.constants["time_1"]
    assert found.stderr == pytest.approx(0.048 * found.value, rel=0.1)
    assert len(found.draws) == 64


def _pooled(first, second):
    again = {point.key: point for point in second}
    return [replace(point, samples=point.samples + again[point.key].samples) for point in first]


def _write(folder, index, scale):
    file = folder / f"all_reduce_{index}.log"
    file.write_text(nccl_log({size: scale * time for size, time in times().items()}, 8))
    return file


A100 = "NVIDIA A100-SXM4-40GB"


def fitted(folder, found, *, ranks=8, hosts=1, device=A100, changed=lambda text: text):
    """A profile by the two commands, of a log of a GPU of the catalogue."""
    log, data, profile = folder / "all_reduce_perf.log", folder / "data.json", folder / "mine.toml"
    log.write_text(changed(nccl_log(found, ranks, hosts=hosts, device=device)))
    assert main(["calibrate", "import", str(log), "-o", str(data)]) == 0
    assert main(["calibrate", "fit", str(data), "-o", str(profile)]) == 0
    return profile


def refused(profile, program, machine):
    with pytest.raises(InputError) as caught:
        simperf.run(scenario(profile, program, machine))
    (problem,) = caught.value.problems
    assert problem.file == str(profile)
    return problem


@pytest.mark.parametrize("machine", ["dgx-h100", "rtx4090-8gpu", "dgx-2"])
@pytest.mark.parametrize("use", ["all-reduce", "train"])
def test_it_is_refused_on_another_gpu(tmp_path, machine, use):
    profile = fitted(tmp_path, {2**26: 7e-4})
    program = {"use": use, "gpus": 8} | ({"batch": 8} if use == "train" else {"algorithm": "nccl"})
    problem = refused(profile, program, machine)
    assert "collectives by NCCL" in problem.value
    assert "all-reduce of 8 GPUs in one server on a100-sxm4-40gb" in problem.expected
    assert of_program(profile, 2**26).time == pytest.approx(7e-4, rel=1e-9)


def test_other_gpus_exit_with_two(tmp_path, capsys):
    profile = fitted(tmp_path, {2**26: 7e-4})
    file = tmp_path / "scenario.toml"
    program = '[program]\nuse = "all-reduce"\ngpus = 8\nnbytes = "64 MiB"\n'
    file.write_text(f'[machine]\nuse = "dgx-h100"\n[calibration]\nuse = "{profile}"\n{program}')
    assert main(["run", str(file)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "mine.toml" in told
    assert "a100-sxm4-40gb" in told
    for server, code in (("dgx-h100", 2), ("dgx-a100", 0)):
        given = ["--profile", str(profile), "-b", "64M", "-e", "64M"]
        assert main(["collective", "all-reduce", "--server", server, *given]) == code


def _two_servers(profile, gpus):
    cluster = {"server": "dgx-a100", "count": 2, "fabric": {"type": "star", "link": "infiniband-hdr"}}
    machine = simperf.build_machine(cluster, Catalog.load())
    ranks = [name for name in machine.gpus if int(name.rpartition("gpu")[2]) < gpus // 2]
    assert len(ranks) == gpus
    return simperf.collective("all-reduce", on=machine, sizes=["64M"], ranks=ranks, profile=profile)[0].time


def _nameless(text):
    return text.replace(" on node0 device", " device").replace(" on node1 device", " device")


def test_one_server_is_not_two(tmp_path):
    """The number of servers is the log's; if it names no hosts it is one, unless the GPUs do not fit into one."""
    profile = fitted(tmp_path, {2**26: 7e-4})
    with pytest.raises(InputError, match="all-reduce of 8 GPUs in one server"):
        _two_servers(profile, 8)
    profile = fitted(tmp_path, {2**26: 7e-4}, changed=_nameless)
    assert of_program(profile, 2**26).time == pytest.approx(7e-4, rel=1e-9)
    with pytest.raises(InputError, match="all-reduce of 8 GPUs"):
        _two_servers(profile, 8)
    profile = fitted(tmp_path, {2**26: 3e-3}, ranks=16, hosts=2, changed=_nameless)
    assert _two_servers(profile, 16) == pytest.approx(3e-3, rel=1e-9)


@pytest.mark.parametrize("use", ["all-reduce", "train"])
def test_less_than_the_links_allow_is_an_error(tmp_path, use):
    """Eight GPUs by PCIe take longer for 64 MiB, whoever measured that."""
    profile = fitted(tmp_path, {2**20: 6e-5, 2**26: 2e-4}, device="A GPU")
    program = {"use": "all-reduce", "gpus": 8, "nbytes": "64 MiB"}
    if use == "train":
        bucket = {"layers": 1, "weights": "64 MiB", "bucket": "64 MiB", "first_bucket": "64 MiB", "steps": 1}
        program = {"use": "train", "gpus": 8, "batch": 8, **bucket}
    problem = refused(profile, program, "rtx4090-8gpu")
    assert "below the bound of the links" in problem.message
    assert "nccl.all-reduce.n8.s1" in problem.value
    one = scenario(profile, program, "rtx4090-8gpu")
    for _ in range(2):  # of one machine, too, which keeps its tuners
        with pytest.raises(InputError, match="below the bound of the links"):
            simperf.run(one)


OPTIONS = [
    {"in_network": False},
    {"version": "2.3"},
    {"launches": 1},
    {"launches": 4},
    {"protocol": "LL"},
    {"protocol": "Simple"},
]


@pytest.mark.parametrize("nbytes", [2**16, 2**26])
@pytest.mark.parametrize(
    ("machine", "device"), [("dgx-a100", A100), ("dgx-h100", "NVIDIA H100 80GB HBM3")], ids=["a100", "h100"]
)
def test_options_change_the_measured_time_as_the_modelled_one(tmp_path, machine, device, nbytes):
    def plain(**more):
        program = {"use": "all-reduce", "algorithm": "nccl", "nbytes": f"{nbytes} B", **more}
        return simperf.run(simperf.make_scenario({"machine": {"use": machine}, "program": program})).time

    usual = plain(options={"launches": 8})
    time = 1.3 * usual
    profile = fitted(tmp_path, {nbytes: time}, device=device)
    assert of_program(profile, nbytes, machine=machine).time == pytest.approx(time, rel=1e-6)
    changed = set()
    for options in OPTIONS:
        expected = plain(options={"launches": 8} | options) / usual
        found = of_program(profile, nbytes, machine=machine, options=options).time / time
        assert found == pytest.approx(expected, rel=1e-6), options
        changed.update(options if abs(expected - 1) > 0.01 else ())
    ring = of_program(profile, nbytes, machine=machine, algorithm="nccl-ring").time / time
    assert ring == pytest.approx(plain(algorithm="nccl-ring", options={"launches": 8}) / usual, rel=1e-6)
    assert {"protocol" if nbytes > 2**20 else "launches"} <= changed
    assert "in_network" in changed or (machine, nbytes) != ("dgx-h100", 2**26)


def test_options_between_servers_too(tmp_path):
    cluster = {"server": "dgx-a100", "count": 2, "fabric": {"type": "star", "link": "infiniband-hdr"}}
    program = {"use": "all-reduce", "algorithm": "nccl", "nbytes": "64 MiB"}

    def time(**more):
        return simperf.run(simperf.make_scenario({"machine": cluster, "program": program, **more})).time

    socket = {"program": {**program, "options": {"network": "socket"}}}
    profile = fitted(tmp_path, {2**26: 1.2 * time()}, ranks=16, hosts=2)
    known = {"calibration": {"use": str(profile)}}
    assert time(**socket) > 1.1 * time()
    assert time(**known, **socket) / time(**known) == pytest.approx(time(**socket) / time(), rel=1e-6)


def test_launches_are_not_faster_than_they_are(tmp_path):
    """A machine that is faster than modelled launches no faster, unless the log shows that."""
    one_process = fitted(tmp_path, {8: 1e-5, 2**26: 7e-4}, changed=lambda text: text.replace("nGpus 8", "nGpus 1"))
    bound = 8 * 4.5e-6
    assert of_program(one_process, 8).time == pytest.approx(1e-5, rel=1e-6)
    assert of_program(one_process, 8, options={"launches": 8}).time == pytest.approx(bound, rel=1e-6)
    eight = fitted(tmp_path, {8: 3e-5, 2**26: 7e-4})
    assert of_program(eight, 8).time == pytest.approx(3e-5, rel=1e-6)
    assert of_program(eight, 8, options={"launches": 8}).time == pytest.approx(3e-5, rel=1e-6)


def test_rows_of_size_zero_are_named(tmp_path, capsys):
    def with_zero(text):
        row = "           0            0 float sum -1 12.00 0.00 0.00 0 0.25 0.00 0.00 0"
        return f"{text}{row}\n"

    profile = fitted(tmp_path, {2**20: 6e-5, 2**26: 7e-4}, changed=with_zero)
    assert "size 0" in capsys.readouterr().out
    assert of_program(profile, 2**26).time == pytest.approx(7e-4, rel=1e-6)


def test_single_readings_tell_no_interval(log, tmp_path, capsys):
    """A log has one time a size: that another one would be the same is not claimed."""
    data, profile = str(tmp_path / "data.json"), str(tmp_path / "mine.toml")
    assert main(["calibrate", "import", str(log), "-o", data]) == 0
    assert main(["calibrate", "fit", data, "-o", profile]) == 0
    report = capsys.readouterr().out
    assert "## warning: all: one reading a point, which tells no interval" in report
    assert "90 %" not in report
    assert main(["calibrate", "validate", profile, data]) == 0
    out, err = capsys.readouterr()
    assert "not known" in out
    assert "100%" not in out
    assert "--hold-out" not in err
    found = simperf.calibrate.validate(profile, data)
    assert {one.inside for one in found.points} == {None}
    assert "not known" in found._repr_html_()


def test_no_size_of_a_log_can_be_held_out(log, tmp_path, capsys):
    data = str(tmp_path / "data.json")
    assert main(["calibrate", "import", str(log), "-o", data]) == 0
    assert main(["calibrate", "fit", data, "--hold-out", "5"]) == 2
    assert "--hold-out: no point can be held out: each has a constant of its own" in capsys.readouterr().err
    assert main(["calibrate", "fit", data, "--hold-out", "0"]) == 0
    assert "--hold-out" not in simperf.calibrate.fit(data).text


def test_several_readings_of_a_size_tell_one(tmp_path, capsys):
    logs = [tmp_path / f"{i}.log" for i in range(3)]
    for factor, file in zip((1.0, 1.1, 0.9), logs, strict=True):
        file.write_text(nccl_log({size: factor * time for size, time in times().items()}, 8))
    data = str(tmp_path / "data.json")
    assert main(["calibrate", "import", *map(str, logs), "-o", data]) == 0
    found = simperf.calibrate.fit(data)
    assert all(
        one.low < one.value < one.high and not one.note for m in found.models.values() for one in m.constant.values()
    )
