"""Sources that must be refused: schemas, times and options."""

from __future__ import annotations

import penstock as ps
from model.wrong_networks.cases import CARS, cars, case


@case
def source_without_schema():
    ps.Network("n").source("cars", ps.csv("in/"), timestamp="time")


@case
def source_schema_misspelt():
    ps.csv("in/", "time TIMESTAMP, vid INTT")


@case
def source_timestamp_unknown():
    cars(timestamp="tme")


@case
def source_timestamp_no_time():
    cars(timestamp="vid")


@case
def source_lateness_no_duration():
    ps.Network("n").source("cars", ps.csv("in/", CARS), timestamp="time", lateness="10 parsecs")


@case
def columns_differ_in_case():
    cars(schema="time TIMESTAMP, speed INT, Speed INT")


@case
def option_misspelt():
    ps.csv("in/", CARS, heder=True)


@case
def option_of_spark_only():
    ps.csv("in/", CARS, escape="x")


@case
def option_no_flag():
    ps.csv("in/", CARS, header="yes")


@case
def option_two_characters():
    ps.csv("in/", CARS, sep="||")


@case
def option_pattern_unknown_letter():
    ps.csv("in/", CARS, timestampFormat="EEE dd/MM/yyyy")


@case
def option_pattern_open_quote():
    ps.json("in/", CARS, timestampFormat="yyyy'T")


@case
def option_pattern_of_an_output():
    cars().output("out", to=ps.csv("out/", timestampFormat="yyyy"))


@case
def option_compression_of_a_source():
    ps.Network("n").source("cars", ps.parquet("in/", CARS, compression="zstd"))


@case
def option_compression_unknown():
    cars().output("out", to=ps.parquet("out/", compression="zst"))
