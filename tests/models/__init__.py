"""Tests of gibbsite.models."""
