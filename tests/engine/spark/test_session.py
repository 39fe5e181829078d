"""Whose session it is, what spark-submit was told, and a session with another time zone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark import sockets
from penstock.engine.spark.launch import process_environment
from penstock.engine.spark.session import MEANING, MEMORY, SETTINGS, cores_of, for_trains, local_session
from penstock.store.durable import locked

ROWS = "2024-01-01 23:30:00,1\n2024-01-02 00:30:00,2\n"


def test_workers_talk_over_files_that_nobody_else_can_open(spark):
    folder = Path(spark.conf.get("spark.python.unix.domain.socket.dir"))
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert spark.sparkContext.parallelize(range(3), 2).map(lambda i: i + 1).collect() == [1, 2, 3]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert any(path.is_socket() for path in folder.iterdir())


def test_what_jobs_return_leaves_no_file_names_behind(spark):
    """The JVM would remember each of them until it ends."""
    folder = Path(spark.conf.get(sockets.FOLDER))
    before = {path.name for path in folder.iterdir()}
    assert spark.sparkContext.parallelize([1], 1).collect() == [1]
    jvm = spark.sparkContext._jvm
    remembered = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    remembered.setAccessible(True)
    names = [name for name in remembered.get(None) if name.startswith(str(folder))]
    assert len(names) <= len(before)


def test_short_names_where_those_of_the_temporary_folder_are_too_long(monkeypatch, tmp_path):
    (long := tmp_path / ("x" * 80)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    folder = Path(sockets.socket_files()[sockets.FOLDER])
    assert folder.parent == Path("/tmp")
    assert [path.name for path in folder.iterdir()] == ["owner"]
    with locked(folder / "owner", wait=False) as orphaned:
        assert not orphaned, "it is ours as long as we live"
    shutil.rmtree(folder)


def test_folders_of_killed_processes_go_with_the_next_start(tmp_path):
    (mine := tmp_path / "penstock-sockets-mine").mkdir()
    (killed := tmp_path / "penstock-sockets-killed").mkdir()
    (killed / "owner").touch()
    with locked(mine / "owner"):
        sockets.delete_orphans(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]


def test_a_thread_of_the_users_takes_the_session_that_runs_as_it_is(elsewhere):
    """A session is active in one thread only; the defaults must not be put into it from another."""
    before, found = elsewhere.conf.getAll, []
    thread = threading.Thread(target=lambda: found.append(local_session(name="of a thread")))
    thread.start()
    thread.join()
    assert found[0].sparkContext is elsewhere.sparkContext
    assert found[0].conf.get("spark.app.name") != "of a thread"
    assert elsewhere.conf.getAll == before


def test_the_folder_of_sockets_goes_with_a_killed_process():
    script = """
import os, signal
from penstock.engine.spark import sockets
from penstock.engine.spark.session import local_session
print(local_session().conf.get(sockets.FOLDER), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    folder, end = Path(done.stdout.strip()), time.monotonic() + 30
    assert done.returncode == -9
    while folder.exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def hours(folder):
    net = ps.Network("hours")
    cars = net.source("cars", ps.csv(str(folder), "time TIMESTAMP, v INT"), timestamp="time")
    sink = ps.memory()
    cars.map(hour="hour(time)", text="CAST(time AS STRING)").output("out", to=sink)
    return net, sink


@pytest.fixture
def elsewhere(spark):
    """The suite's Spark, seen by somebody who works in another time zone and without ANSI."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "3")
    return session


def test_a_given_session_keeps_its_settings_and_times_are_utc(elsewhere, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(ROWS)
    net, sink = hours(tmp_path / "in")
    with ps.Runtime(net, elsewhere, tmp_path / "checkpoint", once=True, close=True) as running:
        assert running.wait(120)
    assert [(r["hour"], r["text"]) for r in sink.rows] == [
        (23, "2024-01-01 23:30:00"),
        (0, "2024-01-02 00:30:00"),
    ]
    assert elsewhere.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert elsewhere.range(3).count() == 3  # nobody has stopped it


def test_trains_run_beside_it_with_its_other_settings(spark, elsewhere):
    assert for_trains(spark) is spark
    beside = for_trains(elsewhere)
    assert beside is not elsewhere
    assert beside.conf.get("spark.sql.session.timeZone") == "UTC"
    assert beside.conf.get("spark.sql.shuffle.partitions") == "3"


class Conf(dict):
    """The settings of a session that is no more than these."""

    def set(self, key, value):
        self[key] = value

    @property
    def getAll(self):
        return dict(self)

    def isModifiable(self, key):
        return key in self


def test_texts_in_expressions_stay_as_they_are_written():
    """As Spark comes, `k = '${user}'` compares with the value of a variable."""
    spark = SimpleNamespace(conf=Conf({**MEANING, "spark.sql.variable.substitute": "true"}))
    spark.newSession = lambda: SimpleNamespace(conf=Conf())
    assert for_trains(spark).conf == MEANING
    assert SETTINGS["spark.sql.variable.substitute"] == "false"  # so our own session needs none beside it
    assert for_trains(fitting := SimpleNamespace(conf=Conf(MEANING))) is fitting


def test_workers_are_told_to_keep_their_memory_and_this_process_is_not(spark):
    def told(_):
        return {name: os.environ.get(name) for name in MEMORY}

    assert spark.sparkContext.parallelize([0], 1).map(told).collect() == [MEMORY]
    assert not {name for name, value in MEMORY.items() if os.environ.get(name) == value}


def test_what_the_user_has_set_for_processes_holds(monkeypatch):
    monkeypatch.setenv("PENSTOCK_ONE", "mine")
    with process_environment({"PENSTOCK_ONE": "ours", "PENSTOCK_OTHER": "ours"}):
        assert (os.environ["PENSTOCK_ONE"], os.environ["PENSTOCK_OTHER"]) == ("mine", "ours")
    assert os.environ["PENSTOCK_ONE"] == "mine"
    assert "PENSTOCK_OTHER" not in os.environ


def test_a_session_that_runs_already_is_not_ended(spark, tmp_path):
    """`spark` is not given, but found."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(ROWS)
    net, sink = hours(tmp_path / "in")
    with ps.Runtime(net, checkpoint=tmp_path / "checkpoint", once=True, close=True) as running:
        assert running.wait(120)
    assert len(sink.rows) == 2
    assert spark.range(3).count() == 3


SUBMITTED = """
import json
from penstock.engine.spark.session import local_session
spark = local_session()
sql = "spark.sql.shuffle.partitions", "spark.sql.session.timeZone"
keys = ("spark.master", "spark.driver.memory", *sql, "spark.app.name")
print(json.dumps({key: spark.conf.get(key) for key in keys}))
spark.stop()
"""


@pytest.mark.slow
def test_what_spark_submit_was_told_holds(tmp_path):
    (tmp_path / "job.py").write_text(SUBMITTED)
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    told = [
        "--master",
        "local[1]",
        "--name",
        "mine",
        "--conf",
        "spark.sql.shuffle.partitions=7",
        "--driver-memory",
        "600m",
    ]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    made = subprocess.run(
        [submit, *told, tmp_path / "job.py"],
        env={**os.environ, **python},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout.splitlines()[-1]) == {
        "spark.master": "local[1]",
        "spark.driver.memory": "600m",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.session.timeZone": "UTC",
        "spark.app.name": "mine",
    }


def shuffles(spark):
    """Files of this session's shuffles; other Sparks may run on the machine."""
    folder = Path(spark.sparkContext.getConf().get("spark.local.dir"))
    return {str(path) for path in folder.glob("blockmgr-*/*/shuffle_*")}


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[1,4]", 1), ("local[999]", 4), ("local[*]", 4), ("yarn", 4)]
)
def test_trains_cannot_use_more_cores_than_a_local_session_has_tasks(monkeypatch, master, cores):
    monkeypatch.setattr("penstock.engine.spark.session.usable_cores", lambda: 4)
    assert cores_of(SimpleNamespace(sparkContext=SimpleNamespace(master=master))) == cores


def test_a_train_leaves_no_shuffle_behind(spark, tmp_path):
    net = ps.Network("n")
    rows = [(second, second % 7) for second in range(200)]
    cars = net.source("cars", ps.rows(rows, "time TIMESTAMP, v INT"), timestamp="time")
    sink = ps.memory()
    cars.group_by("v").tumble("10 seconds", n="count(*)").output("out", to=sink)
    before, policy = shuffles(spark), AsSoonAsPossible(length=20)
    with ps.Runtime(net, spark, tmp_path / "checkpoint", once=True, close=True, policy=policy) as running:
        running.wait(120)
        assert sum(status.trains for status in running.status().subnetworks) >= 10
    assert sum(row["n"] for row in sink.rows) == 200
    until = time.monotonic() + 60  # they are removed beside the train
    while len(shuffles(spark) - before) >= 10 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(shuffles(spark) - before) < 10
