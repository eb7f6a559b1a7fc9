"""The command of large models on cases of one's own, and the table of products of another machine."""

import json

import pytest

from tests.accuracy.test_large_cases import CASE
from tests.truth.large_models import main
from tests.truth.simumax_kernels import PEAK, attention_rows, rows


def test_the_command_prints_rows_medians_and_what_is_left_out(tmp_path, capsys):
    memory = {"metric": "peak_allocated_max_over_ranks", "value": 10, "unit": "GiB"}
    unknown = {**CASE, "id": "two", "hardware": {**CASE["hardware"], "gpu": "TPU-v5p"}}
    cases = [{**CASE, "measured_memory": memory}, unknown]
    (tmp_path / "mine.json").write_text(json.dumps({"family": "mine", "cases": cases}), "utf-8")
    assert main(["--cases", str(tmp_path), "--memory"]) == 0
    told = capsys.readouterr().out
    assert "| mine | one | memory | 10 |" in told
    assert "| mine | memory | 1 |" in told
    assert "assumed: mine: norms, positions, biases and dropout as of Llama (1 cases)" in told
    assert "left out: mine: the catalogue has no GPU 'TPU-v5p' (1 cases)" in told


def test_shares_of_the_peak_become_times_and_layouts_a_median():
    sizes = "b=1, m=4096, k=8192, n=1024, layout="
    factors = {f"{sizes}TN, accumulate=False": 0.5, f"{sizes}NN, accumulate=False": 0.25, "b=2, m=1, k=1, n=1": 1.0}
    ((shape, time),) = rows(factors).items()
    assert shape == (4096, 1024, 8192)
    alone = 2e3 * 4096 * 1024 * 8192 / 2250e12
    assert time == pytest.approx((2 * alone + 4 * alone) / 2)


@pytest.mark.parametrize("value", [128, 64])
def test_shares_of_attention_are_of_its_arithmetic_without_a_mask(value):
    sizes = (
        f"batch=1, seq_len=4096, head_num=16, kv_head_num=4, qk_head_dim=128, v_head_dim={value}, qkv_contiguous=True"
    )
    ((forward, time, shape),) = attention_rows({sizes: 0.5}, 1.0, back=False)
    ((backward, back, _),) = attention_rows({sizes: 0.5}, 2.5, back=True)
    assert shape == (4096, 16, 4, 128, value)
    assert forward.flops == pytest.approx(time * 0.5 * PEAK / 2)
    assert backward.flops == pytest.approx(back * 0.5 * PEAK / 2)
    assert (forward.kind, backward.kind) == ("attention", "attention_backward")
    assert forward.library == backward.library == "cudnn"
