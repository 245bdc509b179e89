"""Tests of `chronolet archive`."""
