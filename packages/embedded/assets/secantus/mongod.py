"""SecantusDB behind the command line of `mongod`, so that mongodb-memory-server can run it.

It takes mongod's own flags (those that it has no use for are accepted), prints the lines that mongodb-memory-server waits
for, and leaves with mongod's exit codes. SecantusDB's own settings travel as --setParameter:

    oplogMaxEntries=N             events that the change streams can go back, pruned beyond that (default 100000)
    syncOnCommit=true|false       fsync each commit, so that kill -9 loses nothing acknowledged (default true)
    exitOnStdinEof=true|false     stop when standard input ends: the owner is gone, however it died (default false)

and these, which mongod knows too: enableTestCommands, periodicNoopIntervalSecs, transactionLifetimeLimitSeconds,
ttlMonitorSleepSecs.
"""

import errno
import os
import signal
import socket
import sys
import threading
import time

MONGODB_VERSION = "8.2.11"  # what SecantusDB 0.7.0b3 declares itself compatible with
SWITCHES = {"--noauth", "--quiet", "--journal", "--nojournal", "--nounixsocket"}
LOOPBACK = "127.0.0.1"
EXIT_PORT_IN_USE = 48
EXIT_UNUSABLE = 100
STOP_LIMIT_SECONDS = 8.0
PAGE_MAX = "100MB"
EXPIRE_EVERY_SECONDS = 1.0
FORGET_EVERY_SECONDS = 1.0


def parse(arguments):
    """Splits a mongod command line into its options and its --setParameter values."""
    options, parameters, rest = {}, {}, list(arguments)
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        if name in SWITCHES:
            continue
        if not has_value:
            if not rest:
                fail(f"BadValue: {name} needs a value", EXIT_UNUSABLE)
            value = rest.pop(0)
        if name == "--setParameter":
            key, _, setting = value.partition("=")
            parameters[key] = setting
        else:
            options[name] = value
    return options, parameters


def fail(reason, exit_code):
    print(f"exception in initAndListen: {reason}, terminating", flush=True)
    sys.exit(exit_code)


def is_true(text):
    return text.lower() in ("1", "true")


def give_pages_room():
    """Lets pages of WiredTiger grow to a tenth of its cache before whoever reads one has to write it out first.

    The default of 5 MB suits a server in which no transaction stays open for long. Under load here, some do: a page that they keep from being
    written out makes each reader of each document of it try in vain, and sleep, ten times, while SecantusDB holds the lock that all need.
    """
    import wiredtiger

    create = wiredtiger.Session.create

    def create_with_room(self, name, config=None):
        room = [f"memory_page_max={PAGE_MAX}"] if name.startswith("table:") else []
        return create(self, name, ",".join(([config] if config else []) + room))

    wiredtiger.Session.create = create_with_room


def forget_replies_seldom():
    """Has SecantusDB look for replies that it need not keep any more once a second.

    It keeps the last 10,000 replies to writes, should a driver repeat one, and looks through all of them before each write and sorts them after
    it: some milliseconds of each, under a lock that all need.
    """
    from secantus.transactions import TransactionRegistry

    forget = TransactionRegistry._prune_retryable_locked
    last = {}

    def forget_seldom(self):
        now = time.monotonic()
        if now - last.get(id(self), -FORGET_EVERY_SECONDS) >= FORGET_EVERY_SECONDS:
            last[id(self)] = now
            forget(self)

    TransactionRegistry._prune_retryable_locked = forget_seldom


def find_by_id_first():
    """Has a findAndModify reach the document that it has chosen by its `_id`.

    SecantusDB asks for that and for the query again, in one filter, and for such a filter it reads the whole collection: each event that a producer
    emits would read the heads of all aggregates. What it finds is held against the whole filter afterwards, here as there.
    """
    from secantus.storage import Storage

    look_up = Storage._try_index_id_keys

    def look_up_by_id(self, db, coll, filter, *, collation=None):
        is_both = filter and collation is None and filter.keys() == {"_id", "$and"}
        return look_up(self, db, coll, {"_id": filter["_id"]} if is_both else filter, collation=collation)

    Storage._try_index_id_keys = look_up_by_id


def start(options, parameters):
    """Starts the server, on the loopback interface alone whatever --bind_ip says."""
    data_path = options.get("--dbpath", "")
    if not os.path.isdir(data_path):
        fail(f"NonExistentPath: Data directory {data_path} not found.", EXIT_UNUSABLE)
    try:
        from secantus import SecantusDBServer
    except ImportError as error:
        fail(f"ImportError: {error}", EXIT_UNUSABLE)
    give_pages_room()
    forget_replies_seldom()
    find_by_id_first()
    try:
        server = SecantusDBServer(
            host=LOOPBACK,
            port=int(options.get("--port", "27017")),
            storage_path=data_path,
            replica_set_name=options.get("--replSet"),
            enable_test_commands=is_true(parameters.get("enableTestCommands", "false")),
            oplog_max_entries=int(parameters.get("oplogMaxEntries", "100000")),
            sync_on_commit=is_true(parameters.get("syncOnCommit", "true")),
            noop_heartbeat_seconds=float(parameters.get("periodicNoopIntervalSecs", "10")),
            transaction_lifetime_seconds=float(parameters.get("transactionLifetimeLimitSeconds", "60")),
            ttl_sweep_seconds=float(parameters.get("ttlMonitorSleepSecs", "60")),
        )
        server.start()
    except Exception as error:  # whatever it refuses: the reason is for the log, the code for the caller
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            fail(f"SocketException: port {options.get('--port')}: address already in use", EXIT_PORT_IN_USE)
        fail(f"DBPathInUse: {type(error).__name__}: {error}", EXIT_UNUSABLE)
    return server


def expire_transactions(server):
    """Ends transactions past their lifetime, as mongod does by itself.

    SecantusDB does so only when another transaction comes along: what a killed client left open would hold its documents for ever where
    all that is left to be done waits for just those.
    """
    while True:
        time.sleep(EXPIRE_EVERY_SECONDS)
        server.transactions.prune_expired()


def exit_on_end_of(stream, done):
    while stream.read(4096):
        pass
    done.set()


def stop(server):
    """Ends every connection before the server stops.

    A server that stops answers `hello` without its replica set for a moment, and a driver that hears that forgets the server
    for good, so that it would not come back to it after a restart.
    """
    # A connection that does not drain must not keep the process: what was acknowledged is on disk.
    threading.Timer(STOP_LIMIT_SECONDS, os._exit, (1,)).start()
    server._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections, and ends it
    server.connections.close_all()
    server.stop()
    os._exit(0)


def main():
    if "--version" in sys.argv[1:]:
        print(f'db version v{MONGODB_VERSION}\nBuild Info: {{ "engine": "SecantusDB" }}')
        return
    options, parameters = parse(sys.argv[1:])
    server = start(options, parameters)
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    if is_true(parameters.get("exitOnStdinEof", "false")):
        threading.Thread(target=exit_on_end_of, args=(sys.stdin.buffer, done), daemon=True).start()
    threading.Thread(target=expire_transactions, args=(server,), daemon=True).start()
    print(f"Waiting for connections on port {options.get('--port')}", flush=True)
    done.wait()
    stop(server)


main()
