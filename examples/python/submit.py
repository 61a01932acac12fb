#!/usr/bin/env python3
"""Puts a file of jobs, one JSON document a line, into Trawl's intake. Python 3.8 and nothing else.

    python3 submit.py jobs.ndjson                     XADD to the intake stream
    python3 submit.py jobs.ndjson --list              LPUSH to the intake list
    python3 submit.py jobs.ndjson --wait 900          and print each outcome as a line of JSON
    python3 submit.py jobs.ndjson --redis-py          through redis-py (pip install redis) instead of a socket

Trawl's side of it: jobs go into the field `job` of the stream `{trawl}:intake`; what cannot be a scrape comes back on
`{trawl}:intake:rejected` with the reason; each outcome is an event of type `scrape.settled` on `{trawl}:events`.

Exit codes: 0 submitted (with --wait: and none failed), 1 a failure or a reject, 2 usage, 4 not settled in time.
"""

import argparse
import json
import os
import socket
import ssl
import sys
import time
from urllib.parse import unquote, urlparse


class RedisError(Exception):
    pass


class SocketRedis:
    """Redis in forty lines: a command is an array of byte strings (RESP), and replies come in order."""

    def __init__(self, url):
        at = urlparse(url)
        if at.scheme == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(at.path)
        elif at.scheme in ("redis", "rediss"):
            host = at.hostname or "127.0.0.1"
            self.socket = socket.create_connection((host, at.port or 6379), timeout=30)
            if at.scheme == "rediss":
                self.socket = ssl.create_default_context().wrap_socket(self.socket, server_hostname=host)
        else:
            raise RedisError("expected a URL such as redis://127.0.0.1:6379, found " + at.scheme)
        self.reader = self.socket.makefile("rb")
        if at.password:
            self.run("AUTH", *([unquote(at.username)] if at.username else []), unquote(at.password))
        if at.scheme != "unix" and at.path.strip("/"):
            self.run("SELECT", at.path.strip("/"))

    def run(self, *command):
        return self.pipeline([command])[0]

    def pipeline(self, commands):
        """Sends all commands at once, then reads as many replies: one round trip however many jobs there are."""
        wire = []
        for command in commands:
            parts = [part if isinstance(part, bytes) else str(part).encode() for part in command]
            wire.append(b"*%d\r\n" % len(parts))
            wire.extend(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self.socket.sendall(b"".join(wire))
        replies = [self.reply() for _ in commands]
        for reply in replies:
            if isinstance(reply, RedisError):
                raise reply
        return replies

    def reply(self):
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise RedisError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.reader.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        raise RedisError("not a reply of Redis: %r" % line[:80])


class RedisPy:
    """The same two methods on redis-py."""

    def __init__(self, url):
        try:
            import redis
        except ImportError:
            raise RedisError("redis-py is not installed: pip install redis, or leave --redis-py out") from None
        # Protocol 2 and raw replies, as SocketRedis gives them.
        self.client = redis.Redis.from_url(url, protocol=2)
        self.client.response_callbacks.clear()

    def run(self, *command):
        return self.client.execute_command(*command)

    def pipeline(self, commands):
        pipe = self.client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return pipe.execute()


def read_jobs(path):
    with (sys.stdin.buffer if path == "-" else open(path, "rb")) as lines:
        jobs = [line.strip() for line in lines]
    return [job for job in jobs if job]


def last_id(redis, stream):
    newest = redis.run("XREVRANGE", stream, "+", "-", "COUNT", 1)
    return newest[0][0] if newest else b"0-0"


def fields_of(entry):
    flat = entry[1]
    return dict(zip(flat[::2], flat[1::2]))


def wait(redis, prefix, jobs, since, seconds):
    """Prints outcomes as they come. Only a job with an id can be waited for: the others get theirs from Trawl."""
    events, rejected = prefix + ":events", prefix + ":intake:rejected"
    open_scrapes = set()
    for job in jobs:
        try:
            document = json.loads(job)
            if "id" in document:
                open_scrapes.add((document.get("batch") or "default", document["id"]))
        except (ValueError, TypeError):
            pass  # Trawl says what is wrong with it, below.
    sent, bad = {job[:500].decode(errors="replace") for job in jobs}, False
    until = time.monotonic() + seconds
    while open_scrapes and time.monotonic() < until:
        reply = redis.run("XREAD", "COUNT", 100, "BLOCK", 1000, "STREAMS", events, rejected, *since)
        for stream, entries in reply or []:
            for entry in entries:
                fields = fields_of(entry)
                if stream == events.encode():
                    since[0] = entry[0]
                    scrape = (fields[b"batch"].decode(), fields[b"id"].decode())
                    if fields[b"type"] != b"scrape.settled" or scrape not in open_scrapes:
                        continue
                    open_scrapes.discard(scrape)
                    outcome = json.loads(fields[b"data"])
                    bad = bad or outcome["outcome"] not in ("succeeded", "empty", "low_count", "capped")
                    print(json.dumps(outcome), flush=True)
                else:
                    since[1] = entry[0]
                    job = fields[b"job"].decode(errors="replace")
                    if job[:500] not in sent:
                        continue
                    bad = True
                    print("rejected: " + fields[b"reason"].decode(), file=sys.stderr)
                    try:
                        document = json.loads(job)
                        open_scrapes.discard((document.get("batch") or "default", document.get("id")))
                    except (ValueError, AttributeError):
                        pass
    for batch, name in sorted(open_scrapes):
        print("not settled within %d s, or settled long ago: %s.%s" % (seconds, batch, name), file=sys.stderr)
    return 4 if open_scrapes else 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description="Puts a file of jobs into Trawl's intake.")
    parser.add_argument("file", help="one JSON job a line; - reads stdin")
    parser.add_argument("--list", action="store_true", help="LPUSH to the intake list instead of XADD")
    parser.add_argument("--wait", type=float, metavar="SECONDS", help="print each outcome as it comes")
    parser.add_argument("--redis-py", action="store_true", help="use redis-py instead of a plain socket")
    parser.add_argument("--url", default=os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379")
    parser.add_argument("--prefix", default="{trawl}", help="as in trawl.yaml")
    args = parser.parse_args()
    try:
        jobs = read_jobs(args.file)
        redis = RedisPy(args.url) if args.redis_py else SocketRedis(args.url)
        # Before the first job goes in, or its event could be missed.
        since = [last_id(redis, args.prefix + name) for name in (":events", ":intake:rejected")]
        stream, intake_list = args.prefix + ":intake", args.prefix + ":intake:list"
        for start in range(0, len(jobs), 500):
            chunk = jobs[start : start + 500]
            if args.list:
                redis.pipeline([("LPUSH", intake_list, job) for job in chunk])
            else:
                redis.pipeline([("XADD", stream, "*", "job", job) for job in chunk])
        print("submitted %d jobs" % len(jobs), file=sys.stderr)
        return wait(redis, args.prefix, jobs, since, args.wait) if args.wait else 0
    except (RedisError, OSError) as error:
        print("not submitted: %s" % error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
