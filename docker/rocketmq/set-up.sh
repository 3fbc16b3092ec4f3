#!/bin/sh
# Creates the topics and groups that the services of docker/compose.yaml ask for, or brings them into the form that their preflight accepts.
# Written by `npx vitest run --project unit scripts/src/docker -u` from the services' settings.
set -eu

# The tool exits with 0 whatever happens, and tells success in words only. A broker that has just started may not be registered yet.
mqadmin() {
  tries=30
  while [ "$tries" -gt 0 ]; do
    answer=$(sh "$ROCKETMQ_HOME/bin/mqadmin" "$@" 2>&1) || true
    case "$answer" in *success*)
      echo "done: mqadmin $*"
      return 0
      ;;
    esac
    tries=$((tries - 1))
    sleep 2
  done
  echo "not done: mqadmin $*: $answer" >&2
  exit 1
}

mqadmin updateTopic -n "$NAMESRV_ADDR" -c DefaultCluster -t inventory-events -r 8 -w 8 -o true -a +message.type=FIFO
mqadmin updateTopic -n "$NAMESRV_ADDR" -c DefaultCluster -t orders-events -r 8 -w 8 -o true -a +message.type=FIFO
mqadmin updateTopic -n "$NAMESRV_ADDR" -c DefaultCluster -t shipping-events -r 8 -w 8 -o true -a +message.type=FIFO
mqadmin updateSubGroup -n "$NAMESRV_ADDR" -c DefaultCluster -g inventory -o true -r 10000
mqadmin updateSubGroup -n "$NAMESRV_ADDR" -c DefaultCluster -g notification -o true -r 10000
mqadmin updateSubGroup -n "$NAMESRV_ADDR" -c DefaultCluster -g orders -o true -r 10000
mqadmin updateSubGroup -n "$NAMESRV_ADDR" -c DefaultCluster -g points -o true -r 10000
mqadmin updateSubGroup -n "$NAMESRV_ADDR" -c DefaultCluster -g shipping -o true -r 10000
mqadmin updateSubGroup -n "$NAMESRV_ADDR" -c DefaultCluster -g warehouse -o true -r 10000
