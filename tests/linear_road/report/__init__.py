"""Descriptions, pages, comparisons."""
