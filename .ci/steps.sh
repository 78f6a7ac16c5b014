# shellcheck shell=bash
# Functions for .ci/run and .ci/nightly: the set-up of a machine, and steps that are counted. Each step appends its
# result to the file $results. `count` passes the lines of $results to count.mjs as arguments.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results="$work/results"

note() { printf '%s\n' "$@" >>"$results"; }

# Runs a command as a step. If the command exits with code 75, it could not run on this machine, and the step counts as
# skipped. Such a command may write the reason to the file $SKIP_REASON.
step() {
  local begun=$SECONDS
  echo "== $*"
  judge "$*" "$@"
  [[ $? != 2 ]] || note --failed "$*"
  echo "== $((SECONDS - begun)) s for $*"
}

# judge NAME COMMAND …: runs the command. Returns 0 if it succeeded, 1 if it was skipped, and 2 if it failed.
judge() {
  local code reason="$work/reason.$BASHPID"
  : >"$reason"
  SKIP_REASON=$reason "${@:2}"
  code=$?
  [[ $code == 75 ]] && note --skipped "$1: $(head -c 300 "$reason" | grep . || echo 'could not be done on this machine')"
  case $code in 0) return 0 ;; 75) return 1 ;; *) return 2 ;; esac
}

# run_tests COMMAND [OPTION …]: runs a test command as a step. The command writes a JSON report, from which count.mjs
# counts the tests. If the command exits with code 75, it counts as skipped.
run_tests() {
  local file="$work/${1//[^a-z]/-}.json" begun=$SECONDS
  echo "== $*"
  # shellcheck disable=SC2086
  judge "$1" $1 -- "${@:2}" --reporter=default --reporter=json --outputFile.json="$file"
  case $? in
    0) note --report "$1=$file" ;;
    2) note --failed "$1" --report "$1=$file" ;;
  esac
  echo "== $((SECONDS - begun)) s for $*"
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

# Prints a reason and the summary of a run that could not begin, and exits.
give_up() { echo "$1"; echo '0 passed, 1 failed, 0 skipped'; exit 1; }

# set_up FUNCTION: installs the packages and the system's programs, and runs the function once the packages are there.
# Exits if the packages cannot be installed.
set_up() {
  after_packages=$1
  node .ci/provide-libatomic.mjs || give_up 'libatomic.so.1 is missing'
  # These two run in parallel, because installing programs mostly waits for the network.
  side_by_side install_packages install_programs || give_up 'npm ci failed, or a step ended early'
}

install_packages() { npm ci && "$after_packages"; }

install_programs() {
  # The tests of the alerts are skipped without promtool, and the tests of the page without Chromium. The package with
  # promtool also has the Prometheus server, which is not started.
  step provide promtool=prometheus
  step provide chromium-headless-shell=chromium-headless-shell
  # A test that needs one of these programs would install it if it were missing. Installing all of them together takes
  # less time.
  provide redis-server=redis-server haproxy=haproxy pgbouncer=pgbouncer nginx=nginx-light curl=curl zsh=zsh fish=fish \
    mandoc=mandoc debootstrap=debootstrap pg_dump=postgresql dockerd=docker.io \
    || echo 'not installed here; each test that needs one of these programs installs it'
}

# provide PROGRAM=PACKAGE …: installs the Debian packages of the programs that are missing.
provide() {
  local pair packages=()
  for pair; do
    command -v "${pair%=*}" >/dev/null || packages+=("${pair#*=}")
  done
  [[ ${#packages[@]} != 0 ]] || return 0
  local install=(apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${packages[@]}")
  # A fresh machine has no package lists.
  DEBIAN_FRONTEND=noninteractive "${install[@]}" >/dev/null || { apt-get -q update && DEBIAN_FRONTEND=noninteractive "${install[@]}"; } >/dev/null
}
