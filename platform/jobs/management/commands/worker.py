from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from multiprocessing import util
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection, connections
from django.utils import timezone

from basics.metrics import share_with_forks
from basics.processes import die_with_parent
from jobs import registry, runner, slots
from jobs.ends import QueueEnds
from jobs.health import ProbeServer, WorkerHealth
from jobs.heartbeat import heartbeat, worker_name
from jobs.lane import drain_if_started
from jobs.models import Worker
from jobs.queue import SharedFlag, install
from jobs.sweeper import sweep, sweep_orphaned
from tenancy.database.direct import pooler_found
from tenancy.version import code_version

log = structlog.get_logger(__name__)
SWEEP_S = 2.0
ORPHANS_S = 0.5  # how soon a dead worker's jobs are taken back
STOP_S = 20.0


class Command(BaseCommand):
    help = "Run background jobs: a django-q2 cluster, its heartbeat and the sweeper of stuck jobs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--processes", type=int, help="worker processes (GROUNDWORK_WORKERS)")
        parser.add_argument(
            "--health-port",
            type=int,
            help="answer /livez, /readyz and /metrics on this port; 0: do not (GROUNDWORK_WORKER_HEALTH_PORT)",
        )
        parser.add_argument(
            "--health-host", help="address of that port (GROUNDWORK_WORKER_HEALTH_HOST: 127.0.0.1)"
        )

    def handle(
        self,
        *args: Any,
        processes: int | None = None,
        health_port: int | None = None,
        health_host: str | None = None,
        **options: Any,
    ) -> None:
        """Start the cluster and sweep until a signal, then let jobs go back to the queue and leave.

        Every process below this one dies with its parent: django-q2's workers would otherwise outlive a killed
        sentinel and go on working with nobody to supervise them.
        """
        if "pool" in settings.DATABASES["default"]["OPTIONS"]:
            raise CommandError(
                "The worker must not use a connection pool: a forked pool has no threads and hangs. "
                "Unset DJANGO_DB_POOL."
            )
        if wrong := pooler_found():
            raise CommandError(wrong)
        from django_q.cluster import Cluster
        from django_q.conf import Conf
        from django_q.signals import post_spawn

        if processes is not None and processes < 1:
            raise CommandError("--processes: give 1 or more.")
        port = settings.WORKER_HEALTH_PORT if health_port is None else health_port
        if port:
            share_with_forks()  # so that this port knows what the processes below have counted
        if processes is not None:
            Conf.WORKERS = settings.Q_CLUSTER["workers"] = processes
        ends = QueueEnds()
        install(ends)
        registry.run_before_fork()
        if tie := die_with_parent():
            os.register_at_fork(after_in_child=tie)
        runner.stop_flag = SharedFlag()
        slots.install(Conf.WORKERS)
        post_spawn.connect(_when_forked, dispatch_uid="jobs.worker")
        connections.close_all()
        cluster = Cluster()
        stop = threading.Event()
        command = os.getpid()

        def told(*_: Any) -> None:
            # At once, and not when the loop comes round: a sweep may take a while, and the grace of jobs has begun. A
            # process below inherits this, and a signal to it alone must not stop the others.
            if os.getpid() == command:
                runner.stop_flag.set()
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, told)
        cluster.start()
        ends.start()
        registry.run_after_start()
        log.info("worker_ready", name=worker_name(), processes=Conf.WORKERS)
        health = WorkerHealth(stop.is_set)
        try:
            if port:
                _probes_start(health, health_host or settings.WORKER_HEALTH_HOST, port)
            self._supervise(cluster, stop, Conf.WORKERS, health, is_probed=bool(port))
        finally:
            stop.set()
            runner.stop_flag.set()
            cluster.stop_event.set()
            cluster.sentinel.join(STOP_S + settings.DRAIN_SECONDS)
            if cluster.sentinel.is_alive():
                log.warning("worker_stop_forced")
                cluster.sentinel.kill()  # and the kernel ends what is below it
            Worker.objects.filter(name=worker_name()).delete()

    def _supervise(
        self, cluster: Any, stop: threading.Event, processes: int, health: WorkerHealth, *, is_probed: bool
    ) -> None:
        name, swept = worker_name(), 0.0
        pause_s = 0.0  # it is ready after the first round, for which a start waits
        while not stop.wait(pause_s):
            pause_s = ORPHANS_S
            health.round_begin()
            if not cluster.sentinel.is_alive():
                raise CommandError("The queue's sentinel process died; start the worker again.")
            try:
                if time.monotonic() - swept < SWEEP_S:
                    sweep_orphaned()
                    continue
                swept = time.monotonic()
                if is_probed:
                    health.look()
                seen = {"seen_at": timezone.now(), "processes": processes, "version": code_version()}
                if not Worker.objects.filter(name=name).update(**seen):
                    Worker.objects.create(name=name, **seen)
                health.heartbeat_stored()
                sweep()
            except Error as error:
                log.warning("worker_sweep_failed", error=str(error))
                connection.close()


def _probes_start(health: WorkerHealth, host: str, port: int) -> None:
    """Answer probes. Called after the cluster was forked, whose processes would keep port and threads' locks."""
    try:
        ProbeServer(health, host, port).start()
    except OSError as error:
        raise CommandError(f"Port {port} on {host} for /livez and /readyz cannot be had: {error}.") from error


def _when_forked(**kwargs: Any) -> None:
    """In each new worker process: take part in an orderly stop, and leave nothing behind at exit."""
    # What was imported before the fork stays shared memory only while the collector does not walk it.
    gc.freeze()
    if slots.single is not None:
        # Chat shares the interpreter with ingestion, which gives it up that soon: a turn asks for it a hundred times.
        sys.setswitchinterval(0.001)
    signal.signal(signal.SIGTERM, _on_terminate)
    watcher = threading.Thread(target=_interrupt_on_stop, name="job-stop", daemon=True)
    watcher.start()
    util.Finalize(None, drain_if_started, exitpriority=100)
    util.Finalize(None, slots.join, exitpriority=90)


def _on_terminate(*_: Any) -> None:
    """End at once when only this process is meant (a timeout), but not when the whole group is being stopped."""
    if not runner.stop_flag.wait(0.5):
        os._exit(128 + signal.SIGTERM)


def _interrupt_on_stop() -> None:
    runner.stop_flag.wait()
    heartbeat().interrupt_all()
