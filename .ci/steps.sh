# shellcheck shell=bash
# The steps of a run, for .ci/run. Each step adds its result to the file $results, as arguments of count.mjs.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results="$work/results"

note() { printf '%s\n' "$@" >>"$results"; }

# Runs a command as a step. Exit code 75 means that it could not run on this machine, and counts as skipped.
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

# Runs a test command as a step. Its JSON report counts the tests.
run_tests() {
  local file="$work/${1//[^a-z]/-}.json" begun=$SECONDS
  echo "== $1"
  # shellcheck disable=SC2086
  $1 -- --reporter=default --reporter=json --outputFile.json="$file" || note --failed "$1"
  note --report "$1=$file"
  echo "== $((SECONDS - begun)) s for $1"
}

# Runs functions side by side, and prints the whole output of each when it has ended, in the given order. A function may
# have several steps, which run one after another. Returns 1, and counts a failure, if a function does not return 0.
side_by_side() {
  local name ended pids=() code=0
  echo "== side by side: $*"
  # Each function gets a process group of its own, so that all of it can be ended.
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

# Prints the failed and skipped tests and steps, and how many there were of each. Returns 0 only if nothing failed.
count() {
  touch "$results"
  mapfile -t lines <"$results"
  node "$(dirname "${BASH_SOURCE[0]}")/count.mjs" "${lines[@]}"
}
