#!/bin/sh
# The same line on every node, as the job itself is started:
#   NODES=2 RANKS=4 NODE=0 MASTER=node0 examples/cluster/torchrun.sh traces/
# A task that dies must not be started again: a replay can't take it in.
exec torchrun --nnodes "${NODES:-1}" --nproc-per-node "${RANKS:?ranks of a node}" --node-rank "${NODE:-0}" \
  --master-addr "${MASTER:-127.0.0.1}" --master-port "${PORT:-29500}" --max-restarts 0 --no-python \
  mixdown replay "${1:?the folder of the traces}" --launch env --iters 20
