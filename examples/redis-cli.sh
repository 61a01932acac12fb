#!/bin/sh
# Puts a file of jobs, one JSON document a line, into Trawl's intake with redis-cli and nothing else.
#
#   ./redis-cli.sh stream jobs.ndjson     XADD: the order is kept, each entry has an id (recommended)
#   ./redis-cli.sh list jobs.ndjson       LPUSH: for programs that know nothing but lists
#
# REDIS_URL   where Redis is; default redis://127.0.0.1:6379
# PREFIX      `prefix` of trawl.yaml; default {trawl}
# A password does not belong on a command line: leave it out of REDIS_URL and set REDISCLI_AUTH.
set -eu

usage() {
  echo "usage: $0 stream|list FILE" >&2
  exit 2
}
[ $# -eq 2 ] || usage
way=$1
file=$2
case $way in stream | list) ;; *) usage ;; esac
# A default with braces cannot stand in ${PREFIX:-…}.
prefix=${PREFIX:-}
[ -n "$prefix" ] || prefix='{trawl}'

# -x reads the last argument from stdin, so a job may hold any character and be of any length.
send() {
  case $way in
    stream) redis-cli -u "${REDIS_URL:-redis://127.0.0.1:6379}" -x XADD "$prefix:intake" '*' job ;;
    list) redis-cli -u "${REDIS_URL:-redis://127.0.0.1:6379}" -x LPUSH "$prefix:intake:list" ;;
  esac
}

count=0
while IFS= read -r job || [ -n "$job" ]; do
  [ -n "$job" ] || continue
  reply=$(printf '%s' "$job" | send)
  # An entry's id, or the length of the list; everything else is an error of Redis.
  case $reply in
    *[!0-9-]* | '')
      echo "not submitted after $count jobs: $reply" >&2
      exit 1
      ;;
  esac
  count=$((count + 1))
done <"$file"
echo "submitted $count jobs; rejects, with the reason: redis-cli XRANGE '$prefix:intake:rejected' - +"
