"""The query language: SELECT-FROM-WHERE, BEGIN-END, and its normal form (P02-P05, P12)."""
