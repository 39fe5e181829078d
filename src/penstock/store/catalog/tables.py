"""The tables of the catalog, and how records of single trains are summed up."""

from __future__ import annotations

FORMAT = 8

TABLES = """
CREATE TABLE networks (version INTEGER PRIMARY KEY, name TEXT, form TEXT, text TEXT, hash TEXT, time REAL);
CREATE TABLE nodes (
    version INTEGER, position INTEGER, name TEXT, kind TEXT, subnetwork TEXT, tag TEXT, description TEXT,
    grouping TEXT, qos TEXT, PRIMARY KEY (version, position)) WITHOUT ROWID;
CREATE TABLE arrows (
    version INTEGER, tail TEXT, head TEXT, position INTEGER,
    PRIMARY KEY (version, head, position)) WITHOUT ROWID;
CREATE TABLE trains (
    subnetwork TEXT, train INTEGER, start REAL, end REAL, rows_in INTEGER, duration REAL,
    cpu REAL, alone INTEGER, decoded INTEGER, PRIMARY KEY (subnetwork, train)) WITHOUT ROWID;
CREATE TABLE box_counts (
    subnetwork TEXT, train INTEGER, box TEXT, rows_in INTEGER, rows_out INTEGER, dead INTEGER,
    dropped INTEGER, estimated INTEGER, wall REAL, cpu REAL,
    PRIMARY KEY (subnetwork, train, box)) WITHOUT ROWID;
CREATE TABLE accounts (
    subnetwork TEXT, train INTEGER, source TEXT, offered INTEGER, let_in INTEGER, dead INTEGER, late INTEGER,
    shed INTEGER, PRIMARY KEY (subnetwork, train, source)) WITHOUT ROWID;
CREATE TABLE past_accounts (
    subnetwork TEXT, source TEXT, offered INTEGER, let_in INTEGER, dead INTEGER, late INTEGER, shed INTEGER,
    PRIMARY KEY (subnetwork, source)) WITHOUT ROWID;
CREATE TABLE past_trains (
    subnetwork TEXT PRIMARY KEY, trains INTEGER, rows_in INTEGER, duration REAL) WITHOUT ROWID;
CREATE TABLE past_counts (
    subnetwork TEXT, box TEXT, rows_in INTEGER, rows_out INTEGER, dead INTEGER, dropped INTEGER,
    estimated INTEGER, wall REAL, cpu REAL, PRIMARY KEY (subnetwork, box)) WITHOUT ROWID;
CREATE TABLE latencies (
    id INTEGER PRIMARY KEY, output TEXT, time REAL, samples INTEGER, p50 REAL, p95 REAL, p99 REAL, max REAL);
CREATE INDEX latencies_by_output ON latencies (output, id);
CREATE TABLE loads (
    id INTEGER PRIMARY KEY, input TEXT, subnetwork TEXT, time REAL, taken INTEGER, offered_rate REAL,
    waiting INTEGER, waiting_bytes INTEGER, age REAL);
CREATE INDEX loads_by_time ON loads (time);
CREATE TABLE output_seconds (
    output TEXT, second INTEGER, delays TEXT, age REAL, share REAL,
    PRIMARY KEY (output, second)) WITHOUT ROWID;
CREATE INDEX output_seconds_by_time ON output_seconds (second);
CREATE TABLE locations (
    name TEXT, kind TEXT, path TEXT, time REAL, PRIMARY KEY (name, kind)) WITHOUT ROWID;
CREATE TABLE sheds (
    subnetwork TEXT, train INTEGER, valve TEXT, offered INTEGER, shed INTEGER,
    PRIMARY KEY (subnetwork, train, valve)) WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY, time REAL, kind TEXT, subject TEXT, sentence TEXT, outputs TEXT, numbers TEXT,
    expected TEXT, realised TEXT, until REAL);
CREATE TABLE control (name TEXT PRIMARY KEY, time REAL, body TEXT) WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, subject TEXT, time REAL, detail TEXT);
CREATE VIEW totals AS
  SELECT subnetwork, sum(trains) AS trains, sum(rows_in) AS rows_in, sum(duration) AS duration FROM (
    SELECT subnetwork, trains, rows_in, duration FROM past_trains
    UNION ALL SELECT subnetwork, 1, rows_in, duration FROM trains) GROUP BY subnetwork;
CREATE VIEW account_totals AS
  SELECT source, sum(offered) AS offered, sum(let_in) AS let_in, sum(dead) AS dead, sum(late) AS late,
         sum(shed) AS shed FROM (
    SELECT source, offered, let_in, dead, late, shed FROM past_accounts
    UNION ALL SELECT source, offered, let_in, dead, late, shed FROM accounts) GROUP BY source;
CREATE VIEW selectivities AS
  SELECT box, sum(rows_in) AS rows_in, sum(rows_out) AS rows_out, sum(dead) AS dead, sum(dropped) AS dropped,
         max(estimated) AS estimated, sum(wall) AS wall, sum(cpu) AS cpu,
         CAST(sum(rows_out) AS REAL) / nullif(sum(rows_in), 0) AS selectivity FROM (
    SELECT box, rows_in, rows_out, dead, dropped, estimated, wall, cpu FROM past_counts
    UNION ALL SELECT box, rows_in, rows_out, dead, dropped, estimated, wall, cpu FROM box_counts)
  GROUP BY box;
"""

ACCOUNT = "source, offered, let_in, dead, late, shed"
COUNTED = "box, rows_in, rows_out, dead, dropped, estimated, wall, cpu"
LOAD = "input, subnetwork, time, taken, offered_rate, waiting, waiting_bytes, age"
LATENCY = "output, time, samples, p50, p95, p99, max"

ROLL_UP = """
INSERT INTO past_trains SELECT subnetwork, count(*), sum(rows_in), sum(duration) FROM trains
  WHERE subnetwork = :s AND train <= :t GROUP BY subnetwork
  ON CONFLICT DO UPDATE SET trains = trains + excluded.trains, rows_in = rows_in + excluded.rows_in,
    duration = duration + excluded.duration;
INSERT INTO past_counts
  SELECT subnetwork, box, sum(rows_in), sum(rows_out), sum(dead), sum(dropped), max(estimated),
         sum(wall), sum(cpu)
  FROM box_counts WHERE subnetwork = :s AND train <= :t GROUP BY subnetwork, box
  ON CONFLICT DO UPDATE SET rows_in = rows_in + excluded.rows_in, rows_out = rows_out + excluded.rows_out,
    dead = dead + excluded.dead, dropped = dropped + excluded.dropped,
    estimated = max(estimated, excluded.estimated), wall = wall + excluded.wall, cpu = cpu + excluded.cpu;
INSERT INTO past_accounts
  SELECT subnetwork, source, sum(offered), sum(let_in), sum(dead), sum(late), sum(shed)
  FROM accounts WHERE subnetwork = :s AND train <= :t GROUP BY subnetwork, source
  ON CONFLICT DO UPDATE SET offered = offered + excluded.offered, let_in = let_in + excluded.let_in,
    dead = dead + excluded.dead, late = late + excluded.late, shed = shed + excluded.shed;
DELETE FROM trains WHERE subnetwork = :s AND train <= :t;
DELETE FROM box_counts WHERE subnetwork = :s AND train <= :t;
DELETE FROM accounts WHERE subnetwork = :s AND train <= :t;
DELETE FROM sheds WHERE subnetwork = :s AND train <= :t
"""

FORGET_LATENCIES = """
DELETE FROM latencies WHERE output = :o
  AND id <= (SELECT id FROM latencies WHERE output = :o ORDER BY id DESC LIMIT 1 OFFSET :k)
"""
