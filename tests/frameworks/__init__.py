"""Tests of configurations of training frameworks."""
