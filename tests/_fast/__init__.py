"""Tests of the compiled CPU loops."""
