# shellcheck shell=bash
# Functions that run the steps of .ci/run. Each step appends its result to the file $results. `count` passes the lines
# of $results to count.mjs as arguments.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results="$work/results"

note() { printf '%s\n' "$@" >>"$results"; }

# Runs a command as a step. If the command exits with code 75, it could not run on this machine, and the step counts as
# skipped.
step() {
  local begun=$SECONDS
  echo "== $*"
  "$@"
  case $? in
    0) ;;
    75) note --skipped "$* could not be done on this machine" ;;
    *) note --failed "$*" ;;
  esac
  echo "== $((SECONDS - begun)) s for $*"
}

# Runs a test command as a step. The command writes a JSON report, from which count.mjs counts the tests.
run_tests() {
  local file="$work/${1//[^a-z]/-}.json" begun=$SECONDS
  echo "== $1"
  # shellcheck disable=SC2086
  $1 -- --reporter=default --reporter=json --outputFile.json="$file" || note --failed "$1"
  note --report "$1=$file"
  echo "== $((SECONDS - begun)) s for $1"
}

# Runs functions in parallel, and prints their outputs one after another, in the order of the arguments. A function may
# have several steps, which run one after another. Each function that does not return 0 counts as a failure, and
# side_by_side then returns 1.
side_by_side() {
  local name ended pids=() code=0
  echo "== side by side: $*"
  # Each function gets a process group of its own, so that the trap below can end all its processes.
  set -m
  for name; do
    (results="$work/$name.results" && "$name") >"$work/$name.out" 2>&1 &
    pids+=($!)
  done
  set +m
  # shellcheck disable=SC2064
  trap "kill -- ${pids[*]/#/-} 2>/dev/null; exit 130" INT TERM
  for name; do
    wait "${pids[0]}"
    ended=$?
    pids=("${pids[@]:1}")
    cat "$work/$name.out"
    [[ ! -f $work/$name.results ]] || cat "$work/$name.results" >>"$results"
    [[ $ended == 0 ]] || { note --failed "$name ended with $ended" && code=1; }
  done
  trap - INT TERM
  return $code
}

# Prints the failed and skipped tests and steps, and how many passed, failed and were skipped. Returns 0 only if nothing
# failed.
count() {
  touch "$results"
  mapfile -t lines <"$results"
  node "$(dirname "${BASH_SOURCE[0]}")/count.mjs" "${lines[@]}"
}
