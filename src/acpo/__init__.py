"""Adversarial Constrained Policy Optimization and its baselines."""
