#!/usr/bin/env bash
# Every benchmark, one after another, compared with the results of the last time (benchmarks/creep.py states what may
# differ by how much). Exit code 0: all that could run did, and nothing crept; 1: something failed or crept. What needs
# data that is not there is named. The new results stay in benchmarks/results; `git checkout` takes them back.
#
#   benchmarks/nightly.sh [NAME ...]     all of them, or those of these names
#
# GROUNDWORK_SHARED_DATA   the folder of real documents (default: ../shared/data)
# NIGHTLY_SETS             a folder with the public sets: qa/, tools/, sentences/, languages/, sec-10-q/,
#                          as each benchmark's text says
# NIGHTLY_S                seconds that one benchmark may take (default: 3600)
set -uo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH=.:platform
python=.venv/bin/python
data=${GROUNDWORK_SHARED_DATA:-../shared/data}
sets=${NIGHTLY_SETS:-../shared/sets}
most=${NIGHTLY_S:-3600}
wanted=" $* "

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
cp benchmarks/results/*.json "$before"
failed=() absent=()

# run NAME [--on-database] [--needs PATH] ARGUMENT ...: one benchmark, with a database of its own where it makes none; a PATH
# that does not exist leaves it out.
run() {
  local name=$1 code=0 module=("benchmarks.$1")
  shift
  if [[ $wanted != "  " && $wanted != *" $name "* ]]; then return; fi
  if [[ ${1:-} == --on-database ]]; then
    module=(benchmarks._on_database "$name")
    shift
  fi
  if [[ ${1:-} == --needs ]]; then
    if [[ ! -e $2 ]]; then
      absent+=("$name ($2)")
      return
    fi
    shift 2
  fi
  echo "== $name $(date -u +%H:%M:%S)"
  timeout --kill-after=30 "$most" "$python" -m "${module[@]}" "$@" || code=$?
  if ((code)); then failed+=("$name (exit code $code)"); fi
}

# Answers and retrieval
run search --on-database --needs "$data"
run scifact_experiment --needs "$data"
run lexical --needs "$data"
run not_found --needs "$sets/qa" --qa "$sets/qa"
run unsupported_sentences --needs "$sets/sentences" --data "$sets/sentences"
run languages --needs "$sets/languages" "$sets/languages" --write
run near_identical --needs "$sets/sec-10-q" "$sets/sec-10-q"
run code_questions --needs "$sets/code" "$sets/code"
run tool_choice --needs "$sets/tools" "$sets/tools"
run neighbours
# Reading
run ingestion --needs "$data"
run fidelity --needs "$data"
run codes --needs "$data"
run code_chunks
run citations --needs "$data/trade-us" "$data/trade-us" --write
run ocr --needs "$data/pdf-us-gov" "$data"/pdf-us-gov/*.pdf
run embedder --needs "$data"
run pipeline --needs "$data"
run no_silence --needs "$data"
# Speed
run startup
run soak
run overhead
run first_text
run streams
run waiting_routes
run concurrency
run turn_cost
run prepared
run restarts
run drain
run tenants
run upgrade --before "$(git rev-list -1 --before='1 week ago' HEAD)"
run share_nothing
run workspace_move
run deprovisioning
run two_sides --bucket
run fairness --embedder local
run fairness --embedder remote
run loop_overhead
run sandbox
run code_mode_differential --programs 5000 --seed 4
run catalog
run policy
run metrics
run audit_stream
run air_gapped --needs var/wheelhouse
run pooler
run openapi_import --on-database
run document_list --on-database
run usage_page --on-database
run swap
run search_plan
run search_scale --on-database --plain
run backup_beside
run dataset_pipeline --needs "$data"
run dataset_throughput
run dataset_kills
run dataset_scale

crept=0
"$python" -m benchmarks.creep "$before" benchmarks/results || crept=1
for one in "${absent[@]}"; do echo "not run, its data is absent: $one"; done
for one in "${failed[@]}"; do echo "FAILED: $one"; done
((crept == 0 && ${#failed[@]} == 0))
