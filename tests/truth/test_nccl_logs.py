"""Measured tables of NCCL as the log of nccl-tests that they were: import, fit, use."""

import pytest

from simperf.accuracy.nccl_tables import table_times
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.importers import import_file
from tests.calibrate.nccl_logs import nccl_log
from tests.calibrate.synthetic import write_profile
from tests.calibrate.test_nccl_profile import of_bucket, of_program


@pytest.mark.parametrize("ranks", [2, 4, 6])
def test_a_measured_table_is_met_at_its_sizes(truth, tmp_path, ranks):
    rows = table_times(truth / "nccl" / f"a100_all_reduce_n{ranks}.csv", ranks=ranks)
    measured = {int(nbytes): time for nbytes, time in rows}
    file, profile = tmp_path / "all_reduce.log", tmp_path / "mine.toml"
    file.write_text(nccl_log(measured, ranks))
    write_profile(profile, fit_dataset(import_file(str(file)).dataset))
    for nbytes, time in list(measured.items())[::60]:
        assert of_program(profile, nbytes, gpus=ranks).time == pytest.approx(time, rel=0.02)
        assert of_bucket(profile, nbytes, gpus=ranks) == pytest.approx(time, rel=0.02)
