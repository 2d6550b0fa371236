"""Schedules: rows that start workflows at their times.

    times       when a schedule fires: cron in a zone, interval, once; jitter
    rules       what is due at a time: started, skipped, missed, kept waiting
    checking    what a schedule may not be, in words
    declared    the schedules that a program declares
    scheduler   fires what is due; any number of processes may
    service     what people do with schedules
    loop        the scheduler in a worker

What a schedule is, is in `afl.runtime.schedule`.

A fire time is when a schedule is to fire by its rule; jitter only delays what then happens. The run
of a fire time has the key `NAME@TIME`, and is made in the transaction that moves the schedule on:
each fire time is started once, whoever dies.
"""
