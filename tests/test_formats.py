"""Formats of models and layouts: read back as written, one format, every problem with its line."""

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from simperf.errors import InputError
from simperf.files import TomlFile
from simperf.formats import table_of
from simperf.layout import DIMENSIONS, SHARDINGS, Layout
from simperf.layout.layout_file import layout_table, parse_layout, read_layout, write_layout
from simperf.scenario.json_schema import json_schema
from simperf.workload.transformers import ACTIVATIONS, NORMS, POSITIONS, Transformer
from simperf.workload.transformers.transformer_file import (
    parse_transformer,
    read_transformer,
    transformer_table,
    write_transformer,
)

MODEL, LAYOUT = (Draft202012Validator(json_schema(kind)) for kind in ("model", "layout"))


@st.composite
def layouts(draw):
    dp, cp = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    ep = draw(st.sampled_from([size for size in range(1, dp * cp + 1) if dp * cp % size == 0]))
    return Layout(
        dp=dp,
        cp=cp,
        ep=ep,
        tp=draw(st.integers(1, 8)),
        pp=draw(st.integers(1, 8)),
        sharding=draw(st.sampled_from(SHARDINGS)) if dp * cp > 1 else "none",
        order=tuple(draw(st.permutations(DIMENSIONS))),
    )


@st.composite
def transformers(draw):
    kv_heads, experts = draw(st.integers(1, 4)), draw(st.integers(0, 8))
    bias = draw(st.booleans())
    return Transformer(
        layers=draw(st.integers(1, 100)),
        hidden=draw(st.integers(1, 9999)),
        heads=kv_heads * draw(st.integers(1, 8)),
        kv_heads=kv_heads,
        head_dim=draw(st.integers(1, 256)),
        ffn=draw(st.integers(0, 9999)),
        vocabulary=draw(st.integers(1, 10**6)),
        sequence=draw(st.integers(1, 10**6)),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        norm=draw(st.sampled_from(NORMS)),
        positions=draw(st.sampled_from(POSITIONS)),
        tied=draw(st.booleans()),
        bias=bias,
        qkv_bias=not bias and draw(st.booleans()),
        qk_norm=draw(st.booleans()),
        dropout=draw(st.booleans()),
        experts=experts,
        experts_per_token=draw(st.integers(1, experts)) if experts else 0,
        expert_ffn=draw(st.integers(0, 9999)) if experts else 0,
        name=draw(st.text(max_size=5)),
    )


def toml_of(text):
    import tomllib

    return TomlFile("given.toml", tomllib.loads(text), text)


@given(layouts())
def test_a_layout_is_read_as_it_was_written(layout):
    table = layout_table(layout)
    toml = toml_of(tomli_w.dumps(table))
    assert table["format"] == 1
    assert parse_layout(toml.data, toml) == layout
    assert LAYOUT.is_valid(toml.data)


@given(transformers())
def test_a_transformer_is_read_as_it_was_written(model):
    toml = toml_of(tomli_w.dumps(transformer_table(model)))
    assert parse_transformer(toml.data, toml) == model
    assert MODEL.is_valid(toml.data)


def test_files_are_read_as_they_were_written(tmp_path):
    layout = Layout(dp=4, tp=8, pp=2, sharding="zero-1")
    write_layout(layout, tmp_path / "layout.toml")
    assert read_layout(tmp_path / "layout.toml") == layout
    assert (tmp_path / "layout.toml").read_text() == 'format = 1\ndp = 4\ntp = 8\npp = 2\nsharding = "zero-1"\n'
    model = Transformer(layers=2, hidden=64, heads=4, vocabulary=100, sequence=16)
    write_transformer(model, tmp_path / "model.toml")
    assert read_transformer(tmp_path / "model.toml") == model
    assert table_of(model) == transformer_table(model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp = 2\ntpp = 4", "given.toml:2: tpp: a layout has no 'tpp'; did you mean 'tp'"),
        ("dp = 2\ntp = 0", "given.toml:2: tp: a whole number of ranks"),
        ("\nformat = 2\ndp = 2", "(?s)given.toml:2: format: a layout of another format.*read: 2.*format = 1"),
        ("format = true", "another format"),
        ("dp = 2\nsharding = 'zero3'", "given.toml:2: sharding: no such sharding; did you mean 'zero-3'"),
        ("order = 'tp-dp'", "given.toml:1: order: not an order"),
        ("order = 5", "given.toml:1: order: not an order"),
        ("dp = '2'", "given.toml:1: dp: a whole number"),
    ],
)
def test_what_is_wrong_with_a_layout_has_its_line(text, message):
    toml = toml_of(text)
    with pytest.raises(InputError, match=message):
        parse_layout(toml.data, toml)
    assert not LAYOUT.is_valid(toml.data) or "order" in toml.data


def test_all_that_is_wrong_with_a_model_is_said():
    toml = toml_of("format = 3\nlayers = 2\nwidth = 64\nheads = 'x'")
    with pytest.raises(InputError) as caught:
        parse_transformer(toml.data, toml)
    keys = [one.key for one in caught.value.problems]
    assert keys == ["format", "width", "hidden", "vocabulary", "sequence"]
